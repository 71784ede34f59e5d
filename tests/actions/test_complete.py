"""``workspace.mcp.complete``: its parameters, and what it answers."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.actions.complete import ACTION, Context
from app.core.problem import Problem, Stage
from app.core.problems import ParameterInvalid, ParameterRequired
from tests.support.acting import done
from tests.support.board_house import peers

PROMPT = {"type": "ref/prompt", "name": "review"}
RESOURCE = {"type": "ref/resource", "uri": "file:///{path}"}
ARGUMENT = {"name": "path", "value": ""}


@pytest.mark.spec("actions")
@pytest.mark.parametrize(
    "asked",
    [
        {"ref": PROMPT, "argument": ARGUMENT},
        {"ref": RESOURCE, "argument": ARGUMENT},
        {"ref": PROMPT, "argument": ARGUMENT, "context": {"arguments": {"language": "python"}}},
    ],
)
async def test_what_is_asked_reaches_the_peer_as_it_is(asked: Any) -> None:
    async with peers() as house:
        house.peer.automatic = lambda request: request.result({"completion": {"values": ["a"]}})
        assert await done(house, ACTION, server="p", **asked) == {"completion": {"values": ["a"]}}
        assert house.peer.requests[0].params == asked


@pytest.mark.spec("actions")
@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"argument": ARGUMENT}, ParameterRequired),
        ({"ref": PROMPT}, ParameterRequired),
        ({"ref": {"type": "ref/prompt"}, "argument": ARGUMENT}, ParameterRequired),
        ({"ref": {"type": "ref/tool", "name": "x"}, "argument": ARGUMENT}, ParameterInvalid),
        ({"ref": PROMPT, "argument": {"name": "x", "value": 1}}, ParameterInvalid),
        ({"ref": PROMPT, "argument": ARGUMENT, "context": {"arguments": {"x": 1}}}, ParameterInvalid),
        ({"ref": PROMPT, "argument": ARGUMENT, "context": {"other": {}}}, ParameterInvalid),
        ({"ref": PROMPT, "argument": ARGUMENT, "limit": 3}, ParameterInvalid),
    ],
)
async def test_parameters_are_checked(members: Any, problem: type[Problem]) -> None:
    async with peers() as house:
        with pytest.raises(problem):
            await done(house, ACTION, server="p", **members)
        assert house.peer.requests == []
    assert ACTION.stage is Stage.OPERATION


@pytest.mark.spec("actions")
def test_of_very_many_faulty_choices_the_first_is_judged() -> None:
    choices = {"language": "python", **{f"choice-{number}": number for number in range(1000)}}
    with pytest.raises(ValidationError) as refused:
        Context.model_validate({"arguments": choices})
    assert [fault["loc"] for fault in refused.value.errors()] == [("arguments", "choice-0")]
