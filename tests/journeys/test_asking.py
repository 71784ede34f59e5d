"""Questions of servers through the whole daemon: what is written of them, and what a stop leaves. SPEC §calls."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.eliciting import asks, form
from tests.support.peers.programs import ELICITING_SERVER, http_definition, stdio_definition
from tests.support.processes import peers_of
from tests.support.scripted_http import error, json_reply, scripted_http, text_result
from tests.support.secrets_scan import leaks, leaks_in

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("calls")]

CANARY = "canary/request+state=5c9e"
ANSWER = "canary answer of a person 7d1a"


def asking(state: str, **requests: Any) -> Any:
    return json_reply({"jsonrpc": "2.0", "id": "$id", "result": asks(state=state, **requests)})


@pytest.mark.spec("state", "security")
async def test_no_request_state_and_no_answer_is_written_anywhere(new_daemon: Callable[..., Daemon]) -> None:
    daemon = await new_daemon({"PLURNK_LOG_LEVEL": "debug", "PLURNK_LOG_FORMAT": "json"}).start()
    free = form(schema={"type": "object", "properties": {"text": {"type": "string"}}})
    ends = {
        "well": text_result("done"),
        "error": error(-32602, "bad state"),
        "sampling": asking(CANARY, q={"method": "sampling/createMessage"}),
        "malformed": asking(CANARY, q=None),
        "again": asking(CANARY, q=free),
    }
    told: list[Any] = []
    for name, end in ends.items():
        async with scripted_http({"tools/call": [asking(CANARY, q=free), asking(CANARY), end]}) as peer:
            await daemon.attach("w", http_definition(name, peer.url, read=["echo"]))
            asked = await daemon.run_action("w", "workspace.mcp.call", server=name, tool="echo")
            (interrupt,) = asked[-1]["outcome"]["interrupts"]
            entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"text": ANSWER}}
            async with daemon.run(run_input("w", None, resume=[entry])) as events:
                told += [*asked, *[event async for event in events]]
            operation = interrupt["metadata"]["plurnk"]["operation"]
            async with daemon.client() as client:
                told.append((await client.get(f"/v1/workspaces/w/operations/{operation}")).text)
            sent = [seen.params.get("requestState") for seen in peer.of("tools/call")]
            assert sent == [None, CANARY, CANARY]
            assert name != "well" or told[-2]["outcome"] == {"type": "success"}
    secrets = {"state": CANARY, "answer": ANSWER}
    assert leaks_in(secrets, str(told).encode(), where="what clients were told") == []
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []
    assert await daemon.stop() == 0
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []


@pytest.mark.spec("shutdown")
async def test_a_daemon_that_stops_while_a_person_thinks_leaves_nothing(
    new_daemon: Callable[..., Daemon],
) -> None:
    daemon = await new_daemon({}).start()
    tools = ["deploy", "pay"]
    await daemon.attach("w", stdio_definition("shop", ELICITING_SERVER, "stdio", "sdk", read=tools))
    asked = await daemon.run_action(
        "w", "workspace.mcp.call", server="shop", tool="deploy", arguments={"service": "api"}
    )
    (interrupt,) = asked[-1]["outcome"]["interrupts"]
    children = peers_of(daemon.pid)
    assert children
    watch = run_input("w", {"kind": "workspace.mcp.watch"}, threadId="watch")
    async with daemon.run(watch) as events:
        seen = [await anext(events), await anext(events)]
        assert interrupt["id"] in seen[1]["snapshot"]["plurnk"]["interactions"]
        assert await daemon.stop() == 0
        seen += [event async for event in events]
    assert (seen[-1]["type"], seen[-1]["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})
    for child in children:
        assert not await anyio.Path(f"/proc/{child}").exists()
    assert "Traceback" not in daemon.log
    # Operations and interrupts live in memory: after the start nobody knows the question.
    await daemon.start()
    answer = await daemon_answer(daemon, interrupt["id"])
    assert answer["code"] == "interrupt-not-found"


async def daemon_answer(daemon: Daemon, interrupt: str) -> Any:
    async with daemon.client() as client:
        path = f"/v1/workspaces/w/interactions/{interrupt}"
        return (await client.post(path, json={"status": "cancelled"})).json()


@pytest.mark.spec("lifecycle")
async def test_a_question_outlives_its_client_and_keeps_its_server_busy(
    daemon: Daemon, workspace: str
) -> None:
    definition = stdio_definition("shop", ELICITING_SERVER, "stdio", "sdk", read=["deploy"])
    await daemon.attach(workspace, definition)
    action = {
        "kind": "workspace.mcp.call",
        "server": "shop",
        "tool": "deploy",
        "arguments": {"service": "api"},
    }
    async with daemon.run(run_input(workspace, action)) as events:
        async for event in events:
            if event["type"] == "RUN_FINISHED":
                break
    # The client is gone; another one, on its thread, is told what is open.
    async with daemon.run(run_input(workspace, None, runId="run-2")) as events:
        [*_, last] = [event async for event in events]
    (interrupt,) = last["outcome"]["interrupts"]
    operation = interrupt["metadata"]["plurnk"]["operation"]
    busy = await daemon.act(workspace, "workspace.mcp.detach", name="shop")
    assert (busy["code"], busy["operations"]) == ("server-busy", [operation])
    await daemon.act(workspace, "workspace.mcp.cancel", operation=operation)
    assert (await daemon.act(workspace, "workspace.mcp.detach", name="shop"))["detached"] is True
