"""What tests of the board share: a house with a tool of each effect, proposals, answers, what can be left."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from app.core.interrupts import ResumeEntry
from app.core.problem import Problem
from app.operations.board import Waiting
from app.operations.settled import SettledOperation
from app.operations.tool_call import call
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house

CATALOG = catalog([tool_entry("get"), tool_entry("put")])
RESULT: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}


def peers(*, kept_s: float = 600.0, **settings: str) -> AbstractAsyncContextManager[OperationsHouse]:
    """Run a house whose server ``p`` has ``get`` of effect read and ``put`` of effect host."""
    return operations_house(
        {"p": CATALOG}, definitions={"p": {"read": ["get"]}}, environment=settings, kept_s=kept_s
    )


def ended(number: int = 1, end: bytes | Problem = b'{"status":200}') -> SettledOperation:
    """Return an operation that ended with a question answered and one open."""
    return SettledOperation(
        id=f"op-{number}",
        kind="workspace.mcp.call",
        end=end,
        answers={f"int-a{number}": "x"},
        unanswered=frozenset({f"int-u{number}"}),
        is_expired=False,
        is_cancelled=False,
        tool_call_id=None,
    )


async def propose(house: OperationsHouse, thread: str | None = None) -> tuple[str, str]:
    """Begin a call that waits for consent; return the operation and its interrupt."""
    waiting = await call(house.board, "p", "put", {}, observe=house.events.append, thread_id=thread)
    assert isinstance(waiting, Waiting)
    return waiting.operation, waiting.interrupts[0].id


def accepts(interrupt: str) -> ResumeEntry:
    """Return an accept."""
    return ResumeEntry(interrupt, "resolved", {"decision": "accept"})


def rejects(interrupt: str) -> ResumeEntry:
    """Return a reject."""
    return ResumeEntry(interrupt, "resolved", {"decision": "reject"})


async def resume(house: OperationsHouse, *entries: ResumeEntry, observe: Any = None) -> Any:
    """Resume and return where the operation came to rest."""
    return await house.board.resume(entries, observe=observe or house.events.append)


def answering(house: OperationsHouse, *results: dict[str, Any]) -> None:
    """Have the peer answer its requests with these results, one after the other."""
    remaining = iter(results)
    house.peer.automatic = lambda request: request.result(next(remaining))


async def ask(house: OperationsHouse, *results: dict[str, Any], thread: str | None = None) -> Waiting:
    """Begin a call whose peer answers so; it waits."""
    answering(house, *results)
    waiting = await call(house.board, "p", "get", {"x": None}, observe=house.events.append, thread_id=thread)
    assert isinstance(waiting, Waiting)
    return waiting


async def outcome_of(work: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the work returns, or the Problem it raises."""
    try:
        return await work()
    except Problem as problem:
        return problem


def left(house: OperationsHouse) -> tuple[Any, ...]:
    """Return everything an operation could leave behind, with the count of the whole daemon."""
    return (
        house.leases(),
        house.state("operations"),
        house.state("interactions"),
        house.boards.open_count,
        house.board.open_interrupts(),
        house.workspace.idle_ms() > 0,
    )


NOTHING = ((), {}, {}, 0, (), True)
