"""``workspace.mcp.read``: its parameter, and what it answers."""

from typing import Any

import pytest

from app.actions.read import ACTION
from app.core.problem import Problem, Stage
from app.core.problems import ParameterInvalid, ParameterRequired
from tests.support.acting import done
from tests.support.board_house import peers


@pytest.mark.spec("addresses")
async def test_an_address_is_read() -> None:
    async with peers() as house:
        assert await done(house, ACTION, uri="p:///prompts") == {"prompts": []}
        house.peer.automatic = lambda request: request.result({"contents": []})
        assert await done(house, ACTION, uri="p:///resources/x%3Ay") == {"contents": []}


@pytest.mark.spec("actions")
@pytest.mark.parametrize(
    ("members", "problem", "field"),
    [
        ({}, ParameterRequired, "uri"),
        ({"uri": 1}, ParameterInvalid, "uri"),
        ({"uri": "nonsense"}, ParameterInvalid, "uri"),
        ({"uri": "p:///", "server": "p"}, ParameterInvalid, "server"),
    ],
)
async def test_the_address_is_checked(members: Any, problem: type[Problem], field: str) -> None:
    async with peers() as house:
        with pytest.raises(problem) as raised:
            await done(house, ACTION, **members)
        assert raised.value.facts["field"] == field
    assert ACTION.stage is Stage.OPERATION
