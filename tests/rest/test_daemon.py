"""What REST says about the daemon itself."""

import pytest
from jsonschema import Draft202012Validator

from app.core.definitions import SCHEMA
from tests.support.doors_house import DEFINITION, doors_house

pytestmark = pytest.mark.spec("agui")


async def test_health_and_readiness() -> None:
    async with doors_house() as doors:
        alive, ready = await doors.get("/healthz"), await doors.get("/readyz")
        await doors.streams.end_all()
        still_alive, not_ready = await doors.get("/healthz"), await doors.get("/readyz")
    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    assert still_alive.status_code == 200
    assert (not_ready.status_code, not_ready.json()["code"]) == (503, "shutting-down")


@pytest.mark.spec("security")
async def test_the_operator_alone_sees_the_workspaces() -> None:
    async with doors_house() as doors:
        await doors.act({"kind": "workspace.mcp.list"}, workspace="b")
        await doors.act({"kind": "workspace.mcp.list"}, workspace="a")
        seen = await doors.get("/v1/workspaces")
        refused = await doors.get("/v1/workspaces", token=doors.tokens.for_workspace("a"))
    assert set(seen.json()["workspaces"]) >= {"a", "b"}
    assert seen.json()["workspaces"] == sorted(seen.json()["workspaces"])
    assert (refused.status_code, refused.json()["code"]) == (403, "workspace-refused")


@pytest.mark.spec("definition")
async def test_the_schema_of_a_definition_is_served() -> None:
    async with doors_house() as doors:
        answer = await doors.get("/v1/schemas/server-definition")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json() == SCHEMA
    Draft202012Validator.check_schema(answer.json())
    assert Draft202012Validator(answer.json()).is_valid(DEFINITION)
