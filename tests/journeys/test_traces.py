"""One whole trace, from a client's traceparent over the daemon to the server, in a collector of real parts."""

from collections.abc import Callable, Mapping

import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.otlp_collector import CollectedSpan, otlp_collector
from tests.support.scripted_http import ScriptedHttp, scripted_http, text_result

pytestmark = [pytest.mark.spec("observe"), pytest.mark.timeout(120)]

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "a=1"}
CALL = "workspace.mcp.call"
NewDaemon = Callable[[Mapping[str, str]], Daemon]


async def attached(daemon: Daemon, peer: ScriptedHttp) -> None:
    await daemon.start()
    definition = {"name": "p", "transport": "http", "url": peer.url}
    await daemon.attach("w", definition)


async def proposed_and_accepted(daemon: Daemon) -> None:
    """Call a tool that a person must accept, as one client, and accept as another, who traces nothing."""
    action = {"kind": CALL, "server": "p", "tool": "echo", "arguments": {"canary": "argument"}}
    async with daemon.client() as client:
        asked = await client.post("/v1/workspaces/w/actions", json=action, headers=HEADERS)
        assert asked.status_code == 202
        interaction = asked.json()["interrupts"][0]["id"]
        accept = {"status": "resolved", "payload": {"decision": "accept"}}
        done = await client.post(f"/v1/workspaces/w/interactions/{interaction}", json=accept)
    assert done.json()["content"][0]["text"] == "canary result"


async def test_a_call_is_one_trace_from_its_caller_to_its_server(new_daemon: NewDaemon) -> None:
    with otlp_collector() as collector:
        async with scripted_http({"tools/call": text_result("canary result")}) as peer:
            daemon = new_daemon({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
            await attached(daemon, peer)
            await proposed_and_accepted(daemon)
            assert await daemon.stop() == 0
            (sent,) = [seen.params["_meta"] for seen in peer.of("tools/call")]
            (discovered,) = [seen.params["_meta"] for seen in peer.of("server/discover")]
        spans = collector.spans()
    call, operation, request = (one(spans, name) for name in (CALL, "operation", "tools/call"))
    assert {call.trace, operation.trace, request.trace} == {TRACE}
    assert (call.parent, operation.parent, request.parent) == (CALLER, call.id, operation.id)
    assert (sent["traceparent"], sent["tracestate"]) == (f"{request.context}01", "a=1")
    assert call.attributes == {"plurnk.workspace": "w", "plurnk.server": "p", "plurnk.outcome": "interrupted"}
    assert operation.attributes == {
        "plurnk.server": "p",
        "plurnk.kind": CALL,
        "gen_ai.tool.name": "echo",
        "plurnk.outcome": "completed",
    }
    assert request.attributes == {
        "mcp.method.name": "tools/call",
        "plurnk.server": "p",
        "plurnk.outcome": "answered",
    }
    attach, discover = one(spans, "workspace.mcp.attach"), one(spans, "server/discover")
    assert attach.trace != TRACE
    assert (attach.parent, discover.parent) == ("", attach.id)
    assert discovered["traceparent"].startswith(discover.context)
    assert {span.service for span in spans} == {"plurnk-mcpd"}
    assert not any(b"canary" in body or daemon.token.encode() in body for body in collector.bodies)


async def test_without_a_collector_the_callers_own_context_reaches_the_server(new_daemon: NewDaemon) -> None:
    async with scripted_http({"tools/call": text_result("canary result")}) as peer:
        daemon = new_daemon({})
        await attached(daemon, peer)
        run = run_input("w", {"kind": "workspace.mcp.reconnect", "name": "p"})
        async with daemon.client() as client:
            assert (await client.post("/", json=run, headers=HEADERS)).status_code == 200
        await proposed_and_accepted(daemon)
        assert await daemon.stop() == 0
        attached_first, reconnected = [seen.params["_meta"] for seen in peer.of("server/discover")]
        (called,) = [seen.params["_meta"] for seen in peer.of("tools/call")]
    assert {name: reconnected[name] for name in HEADERS} == HEADERS
    # Who accepted sent no context, and so has none to pass on.
    assert not HEADERS.keys() & {*attached_first, *called}


async def test_a_silent_collector_holds_up_neither_actions_nor_the_end(new_daemon: NewDaemon) -> None:
    with otlp_collector() as collector:
        collector.is_silent.set()
        async with scripted_http({"tools/call": text_result("canary result")}) as peer:
            daemon = new_daemon(
                {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "10"}
            )
            await attached(daemon, peer)
            await proposed_and_accepted(daemon)
            assert await daemon.stop() == 0
        assert collector.headers
    assert "Traceback" not in daemon.log


def one(spans: list[CollectedSpan], name: str) -> CollectedSpan:
    (found,) = [span for span in spans if span.name == name]
    return found
