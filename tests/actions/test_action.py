"""Parameters of an action: closed, unconverted, the first fault named."""

from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from app.actions.action import UNKNOWN_MAX, Action, Done, Params, Run
from app.core.problem import Problem
from app.core.problems import ParameterInvalid, ParameterRequired

pytestmark = pytest.mark.spec("actions")


class Given(Params):
    name: str
    seconds: Annotated[float, Field(gt=0)] | None = None


async def run(_run: Run, _params: Given) -> Done:
    return Done({})


ACTION = Action(kind="test.action", params=Given, run=run, summary="Test.")

FAULTS: dict[str, tuple[dict[str, Any], type[Problem], str]] = {
    "missing": ({}, ParameterRequired, "name"),
    "unknown": ({"name": "p", "nmae": 1}, ParameterInvalid, "nmae"),
    "wrong type": ({"name": 5}, ParameterInvalid, "name"),
    "no conversion": ({"name": "p", "seconds": "5"}, ParameterInvalid, "seconds"),
    "out of range": ({"name": "p", "seconds": 0}, ParameterInvalid, "seconds"),
    "null": ({"name": None}, ParameterInvalid, "name"),
}


@pytest.mark.parametrize("members, expected, field", FAULTS.values(), ids=FAULTS)
def test_a_faulty_parameter_is_named(members: dict[str, Any], expected: type[Problem], field: str) -> None:
    with pytest.raises(expected) as refused:
        ACTION.parse(members)
    assert refused.value.facts["field"] == field


def test_a_value_is_never_quoted() -> None:
    with pytest.raises(ParameterInvalid) as refused:
        ACTION.parse({"name": ["hunter2-canary"]})
    assert "hunter2-canary" not in refused.value.detail


class Nested(Params):
    inner: Given


MANY = {f"member-{number}": number for number in range(1000)}


@pytest.mark.parametrize(
    ("model", "members"),
    [
        (Given, {**MANY, "name": "p"}),
        (Nested, {"inner": {**MANY, "name": "p"}}),
    ],
)
def test_of_very_many_unknown_members_few_are_judged(model: type[Params], members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(members)
    assert [fault["loc"][-1] for fault in refused.value.errors()] == list(MANY)[:UNKNOWN_MAX]


def test_very_many_unknown_members_hide_no_other_fault() -> None:
    for members in (MANY, {**MANY, "name": 5}):
        with pytest.raises((ParameterRequired, ParameterInvalid)) as refused:
            ACTION.parse(members)
        assert refused.value.facts["field"] == "name"


def test_good_parameters_are_returned() -> None:
    assert ACTION.parse({"name": "p", "seconds": 1.5}) == Given(name="p", seconds=1.5)
