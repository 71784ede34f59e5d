"""The table of REST routes is what the contract lists."""

import pytest

from app.rest.routes import ROUTES

pytestmark = pytest.mark.spec("agui")

EXPECTED = {
    "/v1/workspaces/{workspace}/actions": {"POST"},
    "/v1/workspaces/{workspace}/interactions/{interrupt}": {"POST"},
    "/v1/workspaces/{workspace}/operations/{operation}": {"GET", "HEAD"},
    "/v1/workspaces/{workspace}/servers": {"GET", "HEAD", "POST"},
    "/v1/workspaces/{workspace}/servers/{name}": {"PUT", "DELETE"},
    "/v1/workspaces/{workspace}/servers/{name}/reconnect": {"POST"},
    "/v1/workspaces/{workspace}/servers/{name}/oauth/complete": {"POST"},
    "/v1/workspaces": {"GET", "HEAD"},
    "/v1/audit": {"GET", "HEAD"},
    "/v1/schemas/server-definition": {"GET", "HEAD"},
    "/openapi.json": {"GET", "HEAD"},
    "/metrics": {"GET", "HEAD"},
    "/healthz": {"GET", "HEAD"},
    "/readyz": {"GET", "HEAD"},
}


def test_every_path_is_one_route_with_all_its_methods() -> None:
    assert {route.path: route.methods for route in ROUTES} == EXPECTED
    assert len(ROUTES) == len(EXPECTED)
