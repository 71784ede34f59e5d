"""``workspace.mcp.call``: its parameters, and what it answers."""

from typing import Any

import pytest

from app.actions.call import ACTION
from app.core.problem import Problem, Stage
from app.core.problems import ParameterInvalid, ParameterRequired
from tests.support.acting import done, interrupted
from tests.support.board_house import RESULT, peers


@pytest.mark.spec("calls")
async def test_a_read_tool_answers_with_its_result() -> None:
    async with peers() as house:
        house.peer.automatic = lambda request: request.result(RESULT)
        result = await done(house, ACTION, server="p", tool="get")
        assert {name: result[name] for name in ("status", "isError", "content")} == {
            "status": 200,
            "isError": False,
            **RESULT,
        }
        assert house.peer.requests[0].params == {"name": "get", "arguments": {}}


@pytest.mark.spec("calls")
async def test_a_host_tool_answers_with_its_interrupt() -> None:
    async with peers() as house:
        waits = await interrupted(house, ACTION, server="p", tool="put", arguments={"x": [1]})
        (interrupt,) = waits.interrupts
        assert (interrupt.operation, interrupt.thread_id) == (waits.operation, "t-1")
        assert interrupt.metadata["arguments"] == {"x": [1]}


@pytest.mark.spec("actions")
@pytest.mark.parametrize(
    ("members", "problem", "field"),
    [
        ({"tool": "get"}, ParameterRequired, "server"),
        ({"server": "p"}, ParameterRequired, "tool"),
        ({"server": "P!", "tool": "get"}, ParameterInvalid, "server"),
        ({"server": "p", "tool": 1}, ParameterInvalid, "tool"),
        ({"server": "p", "tool": "get", "arguments": []}, ParameterInvalid, "arguments"),
        ({"server": "p", "tool": "get", "arguments": None}, ParameterInvalid, "arguments"),
        ({"server": "p", "tool": "get", "args": {}}, ParameterInvalid, "args"),
    ],
)
async def test_parameters_are_checked_by_name(members: Any, problem: type[Problem], field: str) -> None:
    async with peers() as house:
        with pytest.raises(problem) as raised:
            await done(house, ACTION, **members)
        assert raised.value.facts["field"] == field
        assert house.peer.requests == []


def test_a_call_speaks_for_operations_and_leaves_no_audit_row() -> None:
    assert (ACTION.kind, ACTION.stage, ACTION.is_audited) == ("workspace.mcp.call", Stage.OPERATION, False)
