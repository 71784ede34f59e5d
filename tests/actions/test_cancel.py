"""``workspace.mcp.cancel``: its parameter, and what it answers."""

import pytest

from app.actions.call import ACTION as CALL
from app.actions.cancel import ACTION
from app.core.operation_problems import OperationNotFound
from app.core.problem import Stage
from app.core.problems import ParameterRequired
from tests.support.acting import done, interrupted
from tests.support.board_house import NOTHING, left, peers


@pytest.mark.spec("calls")
async def test_a_waiting_operation_is_cancelled_however_often_it_is_asked() -> None:
    async with peers() as house:
        operation = (await interrupted(house, CALL, server="p", tool="put")).operation
        for _ in range(2):
            assert await done(house, ACTION, operation=operation) == {
                "status": 200,
                "operation": operation,
                "cancelled": True,
            }
        assert left(house) == NOTHING


@pytest.mark.spec("problems")
async def test_an_unknown_operation_is_not_found() -> None:
    async with peers() as house:
        with pytest.raises(OperationNotFound) as raised:
            await done(house, ACTION, operation="op-" + "x" * 500)
        assert len(str(raised.value.facts["operation"])) == 128
        with pytest.raises(ParameterRequired):
            await done(house, ACTION)
    assert ACTION.stage is Stage.OPERATION
