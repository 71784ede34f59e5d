"""A person signs in in the middle of an operation: its refused request alone goes out again, or a Problem ends it."""

from typing import Any

import anyio
import pytest
from typing_extensions import override

from app.core.answers import HttpRefusal
from app.core.events import ToolCallEnded
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthCallbackInvalid, OAuthMetadataInvalid
from app.core.operation_problems import InterruptConflict, InterruptExpired, OperationCancelled
from app.core.problem import Outcome, Problem
from app.core.problems import AuthorizationRefused, ServerBusy, TooMany
from app.core.rfc3339 import rfc3339
from app.operations import reads
from app.operations.board import Settled, Waiting
from app.operations.endings import Rest
from app.operations.tool_call import call
from tests.support.board_house import NOTHING, RESULT, left, outcome_of, resume
from tests.support.eventually import eventually
from tests.support.operations_house import OperationsHouse
from tests.support.protected_house import manage, pending
from tests.support.sign_ins import FOREIGN, GatedAttempt, hands, peer_answers, sign_in_house

pytestmark = pytest.mark.spec("calls", "oauth")

REFUSED = HttpRefusal(401, 'Bearer error="invalid_token"')
SCOPE = HttpRefusal(403, 'Bearer error="insufficient_scope", scope="b"')


async def begin(house: OperationsHouse) -> Rest:
    return await call(house.board, "p", "get", {"x": 1}, observe=house.events.append, thread_id="t-1")


async def asked(house: OperationsHouse) -> str:
    """Begin a call that waits for a sign-in; return its interrupt."""
    waiting = await begin(house)
    assert isinstance(waiting, Waiting)
    return waiting.interrupts[0].id


@pytest.mark.parametrize("refusal", [REFUSED, SCOPE])
async def test_the_callback_of_the_question_sends_the_refused_request_again(refusal: HttpRefusal) -> None:
    attempt = GatedAttempt()
    async with sign_in_house(attempt) as house:
        peer_answers(house, refusal, RESULT)
        waiting = await begin(house)
        assert isinstance(waiting, Waiting)
        (interrupt,) = waiting.interrupts
        assert interrupt.document() | {"message": ""} == {
            "id": interrupt.id,
            "reason": "plurnk:authorization",
            "toolCallId": interrupt.tool_call_id,
            "message": "",
            "responseSchema": {
                "type": "object",
                "properties": {"callbackUrl": {"type": "string"}},
                "required": ["callbackUrl"],
            },
            "expiresAt": interrupt.expires_at,
            "metadata": {
                "plurnk": {
                    "operation": waiting.operation,
                    "server": "p",
                    "tool": "get",
                    "url": attempt.url,
                    "host": "as.example",
                }
            },
        }
        assert interrupt.expires_at[:16] == rfc3339(attempt.expires_at)[:16]
        assert list(house.state("interactions")) == [interrupt.id]
        listed = (await manage(house, "list"))["pending"]
        assert [(each["name"], each["action"]) for each in listed] == [("p", "workspace.mcp.call")]
        with pytest.raises(ServerBusy):
            await house.detach("p")
        settled = await resume(house, hands(interrupt.id, attempt.callback))
        assert isinstance(settled, Settled)
        first, second = house.peer.requests
        assert (first.method, first.params) == (second.method, second.params)
        assert [each.operation for each in house.events if isinstance(each, ToolCallEnded)] == [
            waiting.operation
        ]
        assert await resume(house, hands(interrupt.id, attempt.callback)) == settled
        assert (left(house), await pending(house)) == (NOTHING, [])


@pytest.mark.parametrize("uri", ["p:///resources/r", "p:///prompts/n"])
async def test_reads_and_prompts_ask_too(uri: str) -> None:
    attempt = GatedAttempt()
    answer: dict[str, Any] = {"contents": []} if "resources" in uri else {"messages": []}
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED, answer)
        waiting = await reads.read(house.board, uri, observe=house.events.append)
        assert isinstance(waiting, Waiting)
        assert [each["action"] for each in house.state("pending").values()] == ["workspace.mcp.read"]
        settled = await resume(house, hands(waiting.interrupts[0].id, attempt.callback))
        assert settled.result == answer


async def test_a_completion_asks_nobody() -> None:
    async with sign_in_house(GatedAttempt()) as house:
        peer_answers(house, REFUSED)
        asking: Any = {"ref": {"type": "ref/prompt", "name": "n"}, "argument": {"name": "a", "value": ""}}
        ended = await outcome_of(
            lambda: reads.complete(house.board, "p", asking, observe=house.events.append)
        )
        assert ended.code == "remote-error"


async def test_a_callback_that_used_nothing_up_leaves_the_question_as_open_as_before() -> None:
    attempt = GatedAttempt()
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED, RESULT)
        interrupt = await asked(house)
        shown = house.state("interactions"), house.state("operations"), house.state("pending")
        for _ in range(2):
            with pytest.raises(OAuthCallbackInvalid):
                await resume(house, hands(interrupt, FOREIGN))
        assert shown == (house.state("interactions"), house.state("operations"), house.state("pending"))
        assert [each.id for each in house.board.open_interrupts("t-1")] == [interrupt]
        assert isinstance(await resume(house, hands(interrupt, attempt.callback)), Settled)
        assert left(house) == NOTHING


@pytest.mark.parametrize(
    "failure",
    [OAuthCallbackInvalid("p", "its iss is another", is_over=True), OAuthMetadataInvalid("p", "no token")],
    ids=lambda each: each.code,
)
async def test_a_callback_that_was_used_up_ends_the_operation(failure: Problem) -> None:
    attempt = GatedAttempt()
    attempt.failure = failure
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        for _ in range(2):
            with pytest.raises(type(failure)) as ended:
                await resume(house, hands(interrupt, attempt.callback))
            assert ended.value.outcome is Outcome.REJECTED
        assert (left(house), await pending(house)) == (NOTHING, [])


async def test_who_does_not_sign_in_ends_the_operation() -> None:
    async with sign_in_house(GatedAttempt()) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        with pytest.raises(AuthorizationRefused) as ended:
            await resume(house, ResumeEntry(interrupt, "cancelled"))
        assert ended.value.outcome is Outcome.REJECTED
        assert (left(house), await pending(house)) == (NOTHING, [])


async def test_two_sign_ins_are_asked_for_and_no_third() -> None:
    first, second = GatedAttempt("first"), GatedAttempt("second")
    async with sign_in_house(first, second, GatedAttempt("third")) as house:
        peer_answers(house, SCOPE, SCOPE, SCOPE)
        again = await resume(house, hands(await asked(house), first.callback))
        assert isinstance(again, Waiting)
        assert await pending(house) == [second.url]
        with pytest.raises(AuthorizationRefused) as ended:
            await resume(house, hands(again.interrupts[0].id, second.callback))
        assert ended.value.outcome is Outcome.REJECTED
        assert left(house) == NOTHING


async def test_what_another_operation_was_granted_serves_an_older_question() -> None:
    older, newer = GatedAttempt("older"), GatedAttempt("newer")
    async with sign_in_house(older, newer) as house:
        peer_answers(house, REFUSED, REFUSED, RESULT, RESULT)
        one, two = await asked(house), await asked(house)
        assert await pending(house) == [newer.url]
        assert isinstance(await resume(house, hands(two, newer.callback)), Settled)
        assert isinstance(await resume(house, hands(one, FOREIGN)), Settled)
        assert not older.is_over
        assert (left(house), await pending(house)) == (NOTHING, [])


@pytest.mark.parametrize("is_same", [True, False])
async def test_a_second_answer_during_the_exchange_is_the_same_or_a_conflict(*, is_same: bool) -> None:
    attempt = GatedAttempt()
    gate = attempt.gate = anyio.Event()
    ends: list[Any] = []
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED, RESULT)
        interrupt = await asked(house)

        async def answer(callback_url: str) -> None:
            ends.append(await outcome_of(lambda: resume(house, hands(interrupt, callback_url))))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(answer, attempt.callback)
                await attempt.exchanging.wait()
                group.start_soon(answer, attempt.callback if is_same else FOREIGN)
                await anyio.wait_all_tasks_blocked()
                gate.set()
        assert len(house.peer.requests) == 2
        if is_same:
            assert ends[0] == ends[1]
        else:
            assert isinstance(ends[0], InterruptConflict)
        assert isinstance(ends[1], Settled)


@pytest.mark.parametrize("by", ["workspace.mcp.cancel", "disconnect"])
async def test_an_operation_that_is_cancelled_during_the_exchange_leaves_nothing(by: str) -> None:
    attempt = GatedAttempt()
    attempt.gate = anyio.Event()
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        operation = house.board.operation_of(interrupt)
        assert operation is not None
        ends: list[Any] = []

        async def answer() -> None:
            ends.append(await outcome_of(lambda: resume(house, hands(interrupt, attempt.callback))))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(answer)
                await attempt.exchanging.wait()
                if by == "disconnect":
                    group.cancel_scope.cancel()
                else:
                    house.board.cancel(operation)
        with pytest.raises(OperationCancelled) as cancelled:
            house.board.result_of(operation)
        assert (cancelled.value.facts["by"], cancelled.value.outcome) == (by, Outcome.REJECTED)
        assert (left(house), await pending(house)) == (NOTHING, [])
        assert len(ends) == (0 if by == "disconnect" else 1)


class LateJudge(GatedAttempt):
    """An attempt that looks at the callback only once its gate is open."""

    @override
    async def complete(self, callback_url: str) -> None:
        assert self.gate is not None
        self.exchanging.set()
        await self.gate.wait()
        await super().complete(callback_url)


async def test_a_question_of_an_operation_that_was_cancelled_is_not_opened_again() -> None:
    attempt = LateJudge()
    gate = attempt.gate = anyio.Event()
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        operation = house.board.operation_of(interrupt)
        assert operation is not None
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(outcome_of, lambda: resume(house, hands(interrupt, FOREIGN)))
                await attempt.exchanging.wait()
                # In one turn: the callback is refused, and nobody waits for another.
                gate.set()
                house.board.cancel(operation)
        assert (left(house), await pending(house)) == (NOTHING, [])


async def test_a_sign_in_that_is_done_is_not_pending_while_the_request_runs() -> None:
    attempt = GatedAttempt()
    async with sign_in_house(attempt) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        house.peer.automatic = lambda _: None
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(resume, house, hands(interrupt, attempt.callback))
                await house.peer.next_request()
                request = await house.peer.next_request()
                assert await pending(house) == []
                request.result(RESULT)


async def test_a_sign_in_that_comes_too_late_ends_the_operation() -> None:
    async with sign_in_house(GatedAttempt(expires_in_s=0.05)) as house:
        peer_answers(house, REFUSED)
        interrupt = await asked(house)
        await eventually(lambda: left(house) == NOTHING)
        with pytest.raises(InterruptExpired) as ended:
            await resume(house, hands(interrupt, FOREIGN))
        assert ended.value.outcome is Outcome.REJECTED


async def test_a_change_that_waits_keeps_its_place_in_the_list() -> None:
    change, attempt = GatedAttempt("change"), GatedAttempt()
    async with sign_in_house(attempt) as house:
        house.connector.protected.add("p")
        house.connector.attempts.append(change)
        await manage(house, "reconnect", name="p")
        peer_answers(house, REFUSED, RESULT)
        interrupt = await asked(house)
        assert await pending(house) == [change.url]
        assert isinstance(await resume(house, hands(interrupt, attempt.callback)), Settled)
        assert await pending(house) == [change.url]


@pytest.mark.spec("limits")
async def test_no_sign_in_is_asked_for_beyond_the_limit_or_where_none_can_be_begun() -> None:
    async with sign_in_house(GatedAttempt(), PLURNK_MAX_PENDING="1") as house:
        house.connector.protected.add("q")
        house.connector.attempts.append(GatedAttempt())
        q = {"name": "q", "transport": "http", "url": "http://q.example/mcp"}
        await manage(house, "attach", server=q)
        peer_answers(house, REFUSED, REFUSED)
        many = await outcome_of(lambda: begin(house))
        none = await outcome_of(lambda: begin(house))
        assert [type(each) for each in (many, none)] == [TooMany, AuthorizationRefused]
        assert [each.outcome for each in (many, none)] == [Outcome.REJECTED, Outcome.REJECTED]
        assert left(house)[:3] == NOTHING[:3]
