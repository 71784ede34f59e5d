"""Operations whose peer requires input: questions, answers, further rounds, and every way out of them."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from app.core.addresses import resource_address
from app.core.operation_problems import (
    AnswerInvalid,
    InputRoundsExceeded,
    InputUnsupported,
    InterruptConflict,
    ResumeIncomplete,
    ToolResultInvalid,
)
from app.operations.board import Settled, StillOpen, Waiting
from app.operations.reads import complete, read
from tests.support.board_house import (
    NOTHING,
    RESULT,
    accepts,
    answering,
    ask,
    left,
    outcome_of,
    peers,
    propose,
    resume,
)
from tests.support.eliciting import ENVIRONMENT, STATE, asks, declines, dismisses, fills, form, link, opens
from tests.support.operations_house import OperationsHouse

pytestmark = pytest.mark.spec("calls")

PARAMS: dict[str, Any] = {"name": "get", "arguments": {"x": None}}


def sent(house: OperationsHouse) -> list[dict[str, Any]]:
    """Return what every request but the first had beside the parameters of the first."""
    again: list[dict[str, Any]] = []
    for request in house.peer.requests[1:]:
        assert request.method == "tools/call"
        assert {**request.params, **PARAMS} == request.params
        again.append({name: value for name, value in request.params.items() if name not in PARAMS})
    return again


async def test_a_form_is_answered_and_the_same_request_goes_out_again() -> None:
    async with peers() as house:
        waiting = await ask(house, asks(state=STATE, q=form()), RESULT, thread="t-1")
        (interrupt,) = waiting.interrupts
        assert (interrupt.response_schema, interrupt.thread_id) == (ENVIRONMENT, "t-1")
        assert house.state("operations") == {
            waiting.operation: {"server": "p", "tool": "get", "state": "input_required"}
        }
        ended = await resume(house, fills(interrupt.id, env="prod"))
        assert isinstance(ended, Settled)
        assert ended.result["content"] == RESULT["content"]
        accept = {"q": {"action": "accept", "content": {"env": "prod"}}}
        assert sent(house) == [{"inputResponses": accept, "requestState": STATE}]
        assert house.peer.requests[1].input_schema == house.peer.requests[0].input_schema
        assert left(house) == NOTHING


async def test_all_questions_of_a_result_are_answered_at_once_in_any_order() -> None:
    async with peers() as house:
        waiting = await ask(house, asks(a=form(), b=link(), c=form()), RESULT)
        a, b, c = (each.id for each in waiting.interrupts)
        with pytest.raises(ResumeIncomplete) as incomplete:
            await resume(house, fills(a, env="prod"), opens(b))
        assert incomplete.value.facts == {"missing": [c]}
        with pytest.raises(AnswerInvalid) as invalid:
            await resume(house, declines(c), opens(b), fills(a, env="moon"))
        assert invalid.value.facts["interrupt"] == a
        assert len(house.peer.requests) == 1
        assert [each.id for each in house.board.open_interrupts()] == [a, b, c]
        await resume(house, declines(c), opens(b), fills(a, env="prod"))
        (again,) = sent(house)
        assert again["inputResponses"] == {
            "a": {"action": "accept", "content": {"env": "prod"}},
            "b": {"action": "accept"},
            "c": {"action": "decline"},
        }


async def test_rest_answers_one_by_one_and_the_last_goes_on() -> None:
    async with peers() as house:
        waiting = await ask(house, asks(a=form(), b=link()), RESULT)
        a, b = waiting.interrupts
        taken = await house.board.answer(dismisses(b.id), observe=house.events.append)
        assert taken == StillOpen(waiting.operation, "workspace.mcp.call", (a,))
        assert len(house.peer.requests) == 1
        assert isinstance(
            await house.board.answer(fills(a.id, env="prod"), observe=house.events.append), Settled
        )
        (again,) = sent(house)
        assert again["inputResponses"]["b"] == {"action": "cancel"}
        assert left(house) == NOTHING


@pytest.mark.parametrize("answer", [declines, dismisses])
async def test_a_no_goes_to_the_peer_like_a_yes(answer: Callable[[str], Any]) -> None:
    async with peers() as house:
        (interrupt,) = (await ask(house, asks(q=form()), RESULT)).interrupts
        ended = await resume(house, answer(interrupt.id))
        assert "rejected" not in ended.result
        assert len(sent(house)) == 1


async def test_a_second_round_with_the_same_key_is_a_question_of_its_own() -> None:
    async with peers() as house:
        first = await ask(house, asks(state="1", q=form("one?")), asks(state="2", q=form("two?")), RESULT)
        second = await resume(house, fills(first.interrupts[0].id, env="prod"))
        assert isinstance(second, Waiting)
        (one,), (two,) = first.interrupts, second.interrupts
        assert (two.message, second.operation, one.id != two.id) == ("two?", first.operation, True)
        assert list(house.state("interactions")) == [two.id]
        # The answer of the first round is repeated, late: it is known, and nothing is sent.
        assert await resume(house, fills(one.id, env="prod")) == second
        with pytest.raises(InterruptConflict):
            await resume(house, fills(one.id, env="staging"))
        ended = await resume(house, declines(two.id))
        assert sent(house) == [
            {"inputResponses": {"q": {"action": "accept", "content": {"env": "prod"}}}, "requestState": "1"},
            {"inputResponses": {"q": {"action": "decline"}}, "requestState": "2"},
        ]
        assert (
            await resume(house, fills(one.id, env="prod")) == ended == await resume(house, declines(two.id))
        )
        assert len(house.peer.requests) == 3
        assert left(house) == NOTHING


async def test_consent_first_and_then_the_peers_question() -> None:
    async with peers() as house:
        operation, proposal = await propose(house)
        answering(house, asks(q=form()), RESULT)
        waiting = await resume(house, accepts(proposal))
        assert isinstance(waiting, Waiting)
        assert waiting.operation == operation
        assert house.leases() == (operation,)
        assert isinstance(await resume(house, fills(waiting.interrupts[0].id, env="prod")), Settled)
        assert left(house) == NOTHING


async def test_of_two_clients_that_answer_at_once_the_first_one_stands() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        (interrupt,) = (await ask(house, asks(q=form()))).interrupts
        house.peer.automatic = lambda _: None
        ends: dict[str, Any] = {}

        async def client(name: str, environment: str) -> None:
            ends[name] = await outcome_of(lambda: resume(house, fills(interrupt.id, env=environment)))

        for name, environment in (("first", "prod"), ("same", "prod"), ("other", "staging")):
            group.start_soon(client, name, environment)
        await house.peer.next_request()
        request = await house.peer.next_request()
        await anyio.wait_all_tasks_blocked()
        assert isinstance(ends.pop("other"), InterruptConflict)
        assert ends == {}
        request.result(RESULT)
        await anyio.wait_all_tasks_blocked()
        assert isinstance(ends["first"], Settled)
        assert ends["first"] == ends["same"]
        assert len(house.peer.requests) == 2


async def test_both_clients_see_the_second_round() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        (interrupt,) = (await ask(house, asks(q=form()))).interrupts
        house.peer.automatic = lambda _: None
        ends: list[Any] = []

        async def client() -> None:
            ends.append(await resume(house, fills(interrupt.id, env="prod")))

        group.start_soon(client)
        group.start_soon(client)
        await house.peer.next_request()
        (await house.peer.next_request()).result(asks(q=form()))
        await anyio.wait_all_tasks_blocked()
        assert ends[0] == ends[1]
        assert isinstance(ends[0], Waiting)


async def test_a_question_outlives_its_client_and_another_adopts_it() -> None:
    async with peers() as house:
        with anyio.CancelScope() as client:
            await ask(house, asks(q=form()), asks(q=form("again?")), RESULT, thread="t-1")
            client.cancel()
            await anyio.lowlevel.checkpoint()
        (interrupt,) = house.board.open_interrupts("t-1")
        answered = await house.board.resume(
            [fills(interrupt.id, env="prod")], observe=house.events.append, thread_id="t-2"
        )
        assert isinstance(answered, Waiting)
        # Another round stays with the thread on which the operation was begun.
        assert house.board.open_interrupts("t-1") == answered.interrupts
        assert isinstance(await resume(house, declines(answered.interrupts[0].id)), Settled)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (asks(q=form(), r={"method": "sampling/createMessage", "params": {}}), InputUnsupported),
        (asks(q={"method": "roots/list"}), InputUnsupported),
        (asks(q=link("javascript:alert(1)")), InputUnsupported),
        (asks(state=STATE, q=form(mode="hologram")), InputUnsupported),
        (asks(), ToolResultInvalid),
        ({"resultType": "input_needed", "inputRequests": {"q": form()}}, ToolResultInvalid),
    ],
)
async def test_what_cannot_be_asked_asks_nobody(result: dict[str, Any], problem: type[Exception]) -> None:
    async with peers() as house:
        shown: list[Any] = []
        house.workspace.state.subscribe(shown.append)
        with pytest.raises(problem):
            await ask(house, result)
        assert "interactions" not in str(shown)
        assert len(house.peer.requests) == 1
        assert left(house) == NOTHING


async def test_ten_rounds_are_answered_and_no_more() -> None:
    async with peers() as house:
        end: Any = await ask(house, *[asks(q=link())] * 11)
        for _ in range(9):
            end = await resume(house, opens(end.interrupts[0].id))
        with pytest.raises(InputRoundsExceeded) as raised:
            await resume(house, opens(end.interrupts[0].id))
        assert raised.value.facts == {"server": "p", "rounds": 10}
        assert len(house.peer.requests) == 11
        assert left(house) == NOTHING


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    ("uri", "value", "shown"),
    [
        (resource_address("p", "kb://a"), {"contents": [{"uri": "kb://a", "text": "hi"}]}, "contents"),
        ("p:///prompts/review", {"messages": []}, "messages"),
    ],
)
async def test_reads_and_prompts_ask_too_and_their_end_is_kept(
    uri: str, value: dict[str, Any], shown: str
) -> None:
    async with peers() as house:
        answering(house, asks(state=STATE, q=form()), value)
        waiting = await read(house.board, uri, observe=house.events.append, thread_id="t-1")
        assert isinstance(waiting, Waiting)
        (interrupt,) = waiting.interrupts
        assert (interrupt.tool_call_id, interrupt.metadata.get("tool")) == (None, None)
        assert house.state("operations") == {waiting.operation: {"server": "p", "state": "input_required"}}
        ended = await resume(house, fills(interrupt.id, env="prod"))
        assert (ended.kind, list(ended.result)) == ("workspace.mcp.read", [shown])
        first, again = (request.params for request in house.peer.requests)
        assert again == {
            **first,
            "inputResponses": {"q": {"action": "accept", "content": {"env": "prod"}}},
            "requestState": STATE,
        }
        assert await resume(house, fills(interrupt.id, env="prod")) == ended
        assert house.board.result_of(waiting.operation) == ended
        assert house.board.kind_of(interrupt.id) == "workspace.mcp.read"
        assert house.events == []


async def test_a_completion_may_not_ask() -> None:
    async with peers() as house:
        answering(house, asks(state="s"))
        asked: Any = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}
        with pytest.raises(ToolResultInvalid):
            await complete(house.board, "p", asked, observe=house.events.append)


@pytest.mark.spec("agui")
async def test_the_state_shows_the_beginning_of_a_long_question() -> None:
    async with peers() as house:
        (interrupt,) = (await ask(house, asks(q=form("é" * 100_000)))).interrupts
        assert interrupt.message == "é" * 100_000
        assert house.state("interactions")[interrupt.id]["message"] == "é" * 199 + "…"
