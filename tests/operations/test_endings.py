"""Repeating an end."""

import pytest

from app.core.operation import Completed, Failed
from app.core.operation_problems import ToolCallFailed
from app.core.problem import Outcome, Stage
from app.operations.endings import Settled, settled


@pytest.mark.spec("calls")
def test_a_result_is_repeated() -> None:
    assert settled("op-1", "k", Completed.of({"status": 200})) == Settled("op-1", "k", {"status": 200})


@pytest.mark.spec("calls")
def test_a_problem_is_repeated_as_a_copy_that_keeps_no_traceback_alive() -> None:
    problem = ToolCallFailed("p", "it died").with_outcome(Outcome.EXECUTED)
    raised: list[ToolCallFailed] = []
    for _ in range(2):
        with pytest.raises(ToolCallFailed) as caught:
            settled("op-1", "k", Failed(problem))
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert [each.document() for each in raised] == [problem.document(Stage.OPERATION)] * 2
    assert [each.outcome for each in raised] == [Outcome.EXECUTED] * 2
    assert (problem.__traceback__, str(raised[0])) == (None, str(problem))
