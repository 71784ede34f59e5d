"""From the rest of an operation to the outcome of its action."""

import pytest

from app.actions.action import Done, Interrupted
from app.actions.operation_outcome import action_outcome
from app.core.events import Interrupt
from app.operations.board import Settled, Waiting


@pytest.mark.spec("agui")
def test_a_settled_operation_is_done_and_a_waiting_one_interrupted() -> None:
    interrupt = Interrupt("int-1", "op-1", "tool_call", "?", "2026-11-30T11:45:19Z", {}, {})
    assert action_outcome(Settled("op-1", "k", {"status": 200})) == Done({"status": 200})
    assert action_outcome(Waiting("op-1", "k", (interrupt,))) == Interrupted("op-1", (interrupt,))
