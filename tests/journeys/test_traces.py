"""A client's trace context, over the daemon to the server."""

from collections.abc import Callable, Mapping

import pytest

from tests.support.daemon import Daemon, run_input
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
