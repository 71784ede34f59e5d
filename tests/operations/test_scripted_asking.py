"""What asking peers put on the wire, good and bad, and what they get back, to the byte. SPEC §calls.

Hand-written wire for what no good server sends.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from app.core.problem import Problem
from app.operations.board import Board, Settled, Waiting
from app.operations.tool_call import call
from tests.operations.test_real_peers import board_of, ignore
from tests.support.children import SCRIPTED_STDIO
from tests.support.eliciting import STATE, asks, dismisses, fills, form, link, opens
from tests.support.peers.programs import http_definition, stdio_definition
from tests.support.scripted_http import (
    FRESH,
    REVISION,
    Reply,
    ScriptedHttp,
    json_reply,
    result,
    scripted_http,
    text_result,
)

pytestmark = pytest.mark.spec("calls")

DECLARED = {"elicitation": {"form": {}, "url": {}}}
META = "io.modelcontextprotocol/clientCapabilities"
STATES = {"odd": STATE, "empty": "", "64 KiB": "s" * 65536, "absent": None}
ECHO = {
    "name": "echo",
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {}},
    },
}
ARGUMENTS: dict[str, Any] = {"region": "eu", "n": None}


async def asked(board: Board) -> Waiting:
    waiting = await call(board, "p", "echo", ARGUMENTS, observe=ignore)
    assert isinstance(waiting, Waiting)
    return waiting


def replied(value: Any) -> Reply:
    """Return a JSON-RPC result exactly as given."""
    return json_reply({"jsonrpc": "2.0", "id": "$id", "result": value})


def by_http(peer: ScriptedHttp) -> dict[str, Any]:
    return http_definition("p", peer.url, read=["echo"])


@pytest.mark.spec("connection")
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
async def test_over_http_the_same_request_comes_again_under_a_new_id(state: str | None) -> None:
    answers = [replied(asks(state=state, q=form(), r=link())), text_result("ok")]
    async with (
        scripted_http({"tools/list": result({"tools": [ECHO]}), "tools/call": answers}) as peer,
        board_of(by_http(peer)) as board,
    ):
        one, two = (await asked(board)).interrupts
        ended = await board.resume([fills(one.id, env="prod"), opens(two.id)], observe=ignore)
        assert isinstance(ended, Settled)
        first, again = peer.of("tools/call")
        assert len({seen.message["id"] for seen in peer.seen}) == len(peer.seen)
        assert all(seen.params["_meta"][META] == DECLARED for seen in peer.seen)
        mirrored = {name: value for name, value in first.headers.items() if name.startswith("mcp-")}
        assert {"mcp-method", "mcp-name", "mcp-param-region"} <= set(mirrored)
        assert {name: value for name, value in again.headers.items() if name.startswith("mcp-")} == mirrored
        before, after = ({**seen.params, "_meta": None} for seen in (first, again))
        responses = {"q": {"action": "accept", "content": {"env": "prod"}}, "r": {"action": "accept"}}
        carried = {} if state is None else {"requestState": state}
        assert after == {**before, "inputResponses": responses, **carried}
        assert again.params["_meta"]["progressToken"] != first.params["_meta"]["progressToken"]


@pytest.mark.spec("connection")
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
async def test_over_stdio_the_same_request_comes_again_under_a_new_id(
    tmp_path: Path, state: str | None
) -> None:
    log = tmp_path / "log"
    script = {
        "log": str(log),
        "on": {
            "server/discover": [
                {"result": {**FRESH, "supportedVersions": [REVISION], "capabilities": {"tools": {}}}}
            ],
            "tools/list": [{"result": {**FRESH, "tools": [ECHO]}}],
            "tools/call": [{"result": asks(state=state, q=form())}],
        },
    }
    definition = stdio_definition("p", SCRIPTED_STDIO, json.dumps(script), read=["echo"])
    async with board_of(definition) as board:
        (interrupt,) = (await asked(board)).interrupts
        (second,) = (await board.resume([dismisses(interrupt.id)], observe=ignore)).interrupts  # pyright: ignore[reportAttributeAccessIssue] it waits
        assert second.id != interrupt.id
        board.cancel(second.operation)
    messages = [json.loads(line) for line in log.read_bytes().splitlines() if line != b"EOF"]
    requests = [each for each in messages if "id" in each]
    assert len({each["id"] for each in requests}) == len(requests)
    assert all(each["params"]["_meta"][META] == DECLARED for each in requests)
    # Nothing is in flight while a person thinks: there is nothing to cancel at the peer.
    assert [each["method"] for each in messages if "id" not in each] == []
    first, again = ({**each["params"], "_meta": None} for each in requests if each["method"] == "tools/call")
    carried = {} if state is None else {"requestState": state}
    assert again == {**first, "inputResponses": {"q": {"action": "cancel"}}, **carried}


def raw(result_text: str) -> Reply:
    """Return a JSON-RPC result of this JSON text."""
    text = '{"jsonrpc":"2.0","id":$id,"result":' + result_text + "}"
    return Reply(headers={"Content-Type": "application/json"}, body=text)


def deep(levels: int) -> dict[str, Any]:
    """Return a schema that nests so deep."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return {"type": "object", "properties": {"a": schema}}


_FORM = json.dumps(form())
_LAST = json.dumps(form("the last one"))
MALFORMED: dict[str, tuple[Reply, str, str]] = {
    "nothing": (replied(asks()), "tool-result-invalid", "executed"),
    "empty set": (replied({**asks(), "inputRequests": {}}), "tool-result-invalid", "executed"),
    "nulls": (
        replied({**asks(), "inputRequests": None, "requestState": None}),
        "tool-result-invalid",
        "executed",
    ),
    "null request": (replied(asks(q=None)), "tool-result-invalid", "executed"),
    "state of a number": (replied({**asks(q=form()), "requestState": 7}), "tool-result-invalid", "executed"),
    "unknown result type": (
        replied({**asks(q=form()), "resultType": "input_wanted"}),
        "tool-result-invalid",
        "executed",
    ),
    "null result type": (replied({**asks(q=form()), "resultType": None}), "tool-result-invalid", "executed"),
    "sampling": (
        replied(asks(state=STATE, q={"method": "sampling/createMessage", "params": {}})),
        "input-unsupported",
        "rejected",
    ),
    "roots": (replied(asks(q=form(), r={"method": "roots/list"})), "input-unsupported", "rejected"),
    "unknown mode": (replied(asks(q=form(mode="hologram"))), "input-unsupported", "rejected"),
    "javascript": (replied(asks(q=link("javascript:alert(1)"))), "input-unsupported", "rejected"),
    "user information": (replied(asks(q=link("https://a@b.example/"))), "input-unsupported", "rejected"),
    "65 questions": (
        replied(asks(**{f"q{number}": form() for number in range(65)})),
        "input-unsupported",
        "rejected",
    ),
    "schema that leads away": (
        replied(asks(q=form(schema={"type": "object", "$ref": "http://127.0.0.1:1/s"}))),
        "input-unsupported",
        "rejected",
    ),
    "schema of 80 levels": (
        replied(asks(q=form(schema=deep(80)))),
        "input-unsupported",
        "rejected",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_question_ends_the_call_and_asks_nobody(name: str) -> None:
    reply, code, outcome = MALFORMED[name]
    async with (
        scripted_http({"tools/list": result({"tools": [ECHO]}), "tools/call": reply}) as peer,
        board_of(by_http(peer)) as board,
    ):
        with pytest.raises(Problem) as raised:
            await asked(board)
        assert (raised.value.code, str(raised.value.outcome)) == (code, outcome)
        assert STATE not in str(raised.value.document())
        assert (board.open_interrupts(), len(peer.of("tools/call"))) == ((), 1)
        assert len(board._open) == 0


async def test_of_a_key_that_is_there_twice_the_last_one_is_asked() -> None:
    twice = f'{{"resultType":"input_required","inputRequests":{{"q":{_FORM},"q":{_LAST}}}}}'
    async with (
        scripted_http({"tools/call": [raw(twice), text_result("ok")]}) as peer,
        board_of(by_http(peer)) as board,
    ):
        (interrupt,) = (await asked(board)).interrupts
        assert interrupt.message == "the last one"
        assert isinstance(await board.resume([dismisses(interrupt.id)], observe=ignore), Settled)


@pytest.mark.parametrize(
    ("members", "carried"),
    [
        ({"requestState": None}, {"inputResponses": {"q": {"action": "cancel"}}}),
        ({"inputRequests": None}, {"requestState": "s"}),
        ({"inputRequests": {}}, {"requestState": "s"}),
    ],
)
async def test_a_null_or_an_empty_set_counts_as_absent(members: Any, carried: dict[str, Any]) -> None:
    asking = {**asks(state="s", q=form()), **members}
    async with (
        scripted_http({"tools/call": [replied(asking), text_result("ok")]}) as peer,
        board_of(by_http(peer)) as board,
    ):
        end: Any = await call(board, "p", "echo", {}, observe=ignore)
        if isinstance(end, Waiting):
            end = await board.resume([dismisses(end.interrupts[0].id)], observe=ignore)
        assert isinstance(end, Settled)
        again = peer.of("tools/call")[1].params
        assert {name: again[name] for name in again.keys() - {"name", "arguments", "_meta"}} == carried


async def test_a_question_in_broken_unicode_is_put_with_the_replacement_character() -> None:
    asking = json.dumps(asks(q=form("a\ud83d b")))
    async with (
        scripted_http({"tools/call": [raw(asking), text_result("ok")]}) as peer,
        board_of(by_http(peer)) as board,
    ):
        (interrupt,) = (await asked(board)).interrupts
        assert interrupt.message == "a\ufffd b"
        board.cancel(interrupt.operation)


async def test_a_question_at_any_other_request_is_an_answer_that_cannot_be_used() -> None:
    async with (
        scripted_http({"tools/list": replied(asks(state="s"))}) as peer,
        board_of(by_http(peer)) as board,
    ):
        with pytest.raises(Problem) as raised:
            await asked(board)
        assert raised.value.code == "server-not-connected"
        assert len(peer.of("tools/list")) == 1


async def test_two_calls_never_carry_each_others_answers() -> None:
    def answer(seen: Any) -> Reply:
        number = seen.params["arguments"]["n"]
        return (
            text_result("ok") if "requestState" in seen.params else replied(asks(state=str(number), q=form()))
        )

    async with scripted_http({"tools/call": answer}) as peer, board_of(by_http(peer)) as board:

        async def one(number: int) -> None:
            waiting = await call(board, "p", "echo", {"n": number}, observe=ignore)
            assert isinstance(waiting, Waiting)
            await anyio.lowlevel.checkpoint()
            await board.resume([fills(waiting.interrupts[0].id, env="prod")], observe=ignore)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)
        again = [seen.params for seen in peer.of("tools/call") if "requestState" in seen.params]
        assert len(again) == 5
        assert all(each["requestState"] == str(each["arguments"]["n"]) for each in again)
