"""The component schemas: one for each action, each result and each kind of Problem."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.actions.table import ACTIONS
from app.rest.schemas import RESULTS, action_name, action_schema, components, problem_kinds, status_of

pytestmark = pytest.mark.spec("actions")


def test_every_action_has_a_schema_and_known_results() -> None:
    assert set(RESULTS) == set(ACTIONS)
    names = {name for results in RESULTS.values() for name in results}
    assert names < set(components())


def test_every_component_is_a_schema_and_every_reference_leads_somewhere() -> None:
    schemas: Any = components()
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        for reference in references(schema):
            assert reference.removeprefix("#/components/schemas/") in schemas, (name, reference)


def references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [each for item in schema for each in references(item)]
    if isinstance(schema, dict):
        own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return own + [each for value in schema.values() for each in references(value)]
    return []


def test_an_action_takes_its_kind_and_the_parameters_of_its_model() -> None:
    schema: Any = action_schema(ACTIONS["workspace.mcp.call"])
    assert schema["properties"]["kind"] == {"const": "workspace.mcp.call"}
    assert set(schema["properties"]) == {"kind", "server", "tool", "arguments"}
    assert set(schema["required"]) == {"kind", "server", "tool"}
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "kind, name",
    [("workspace.mcp.list", "ListAction"), ("workspace.mcp.oauth.complete", "OauthCompleteAction")],
)
def test_a_component_is_named_after_its_kind(kind: str, name: str) -> None:
    assert action_name(kind) == name


@pytest.mark.spec("problems")
def test_every_kind_of_problem_is_named_once() -> None:
    codes = [kind.code for kind in problem_kinds()]
    assert len(codes) == len(set(codes)) > 40
    problem: Any = components()["Problem"]
    assert problem["properties"]["code"]["enum"] == sorted(codes)


@pytest.mark.parametrize(
    "component, status",
    [("Attached", "201"), ("AuthorizationPending", "202"), ("Interrupted", "202"), ("Changed", "200")],
)
def test_a_component_is_answered_with_its_status(component: str, status: str) -> None:
    assert status_of(component) == status
