"""The OpenAPI document is complete and true: it has every route, and real answers fit what it says."""

from collections.abc import Mapping
from typing import Any

import httpx2
import orjson
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from app.agui.routes import ROUTES as AGUI
from app.core.names import parse_server_name, parse_workspace_name
from app.core.problem import Problem
from app.rest.openapi import document
from app.rest.routes import ROUTES as REST
from tests.support.doors_house import DEFINITION, PROJECT, call, doors_house

pytestmark = pytest.mark.spec("agui")

DOCUMENT: Any = orjson.loads(orjson.dumps(document()))
W = "/v1/workspaces/{workspace}"


def test_every_route_and_method_is_described_and_nothing_else() -> None:
    routed = {
        (route.path, method.lower())
        for route in (*AGUI, *REST)
        for method in route.methods or ()
        if method != "HEAD"
    }
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == routed


def test_path_parameters_are_those_of_the_path() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            named = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
            assert named == {part.strip("{}") for part in path.split("/") if part.startswith("{")}


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ("workspace", ["w", "A-z.0_9", "a" * 128], ["", ".w", "a" * 129, "a b", "\u00e9"]),
        ("name", ["project", "a-1", "a" * 64], ["", "Project", "1a", "a" * 65, "a_b", "worker"]),
    ],
)
def test_a_name_in_a_path_has_its_pattern(parameter: str, good: list[str], bad: list[str]) -> None:
    schemas = [
        each["schema"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for each in operation.get("parameters", ())
        if each["name"] == parameter
    ]
    assert schemas
    for schema in schemas:
        assert [each for each in [*good, *bad] if Draft202012Validator(schema).is_valid(each)] == good
    judge = {"workspace": parse_workspace_name, "name": parse_server_name}[parameter]
    for each in good:
        assert judge(each) == each
    for each in bad:
        with pytest.raises(Problem):
            judge(each)


def test_only_health_needs_no_token() -> None:
    open_paths = {
        path for path, methods in DOCUMENT["paths"].items() for each in methods.values() if "security" in each
    }
    assert (open_paths, DOCUMENT["security"]) == ({"/healthz", "/readyz"}, [{"bearer": []}])


def test_a_problem_is_described_for_every_status_with_its_codes() -> None:
    answers = DOCUMENT["paths"][f"{W}/actions"]["post"]["responses"]
    assert "server-busy" in answers["409"]["description"]
    assert set(answers) >= {
        "200",
        "201",
        "202",
        "400",
        "401",
        "403",
        "404",
        "409",
        "413",
        "415",
        "422",
        "429",
        "503",
    }


def validator(schema: Any) -> Draft202012Validator:
    resource = Resource(contents=DOCUMENT, specification=DRAFT202012)
    registry: Any = Registry().with_resource("urn:openapi", resource)
    return Draft202012Validator(_absolute(schema), registry=registry)


def _absolute(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_absolute(each) for each in schema]
    if isinstance(schema, dict):
        return {
            name: f"urn:openapi{value}" if name == "$ref" else _absolute(value)
            for name, value in schema.items()
        }
    return schema


def require_true(answer: httpx2.Response, path: str, method: str) -> None:
    """Hold a real answer against what the document says of its path, method, status and media type."""
    described: Mapping[str, Any] = DOCUMENT["paths"][path][method]["responses"]
    assert str(answer.status_code) in described, (path, method, answer.text)
    content = described[str(answer.status_code)]["content"]
    media_type = answer.headers["content-type"].split(";")[0]
    assert media_type in content, (path, method, media_type)
    validator(content[media_type]["schema"]).validate(answer.json())


async def test_real_answers_fit_the_document() -> None:
    async with doors_house({}) as doors:
        doors.house.connector.catalogs["project"] = PROJECT
        w = "/v1/workspaces/w"
        actions: list[Any] = [
            {"kind": "workspace.mcp.attach", "server": DEFINITION},
            {"kind": "workspace.mcp.list"},
            {"kind": "workspace.mcp.tools", "schemas": True},
            {"kind": "workspace.mcp.replace", "server": DEFINITION},
            {"kind": "workspace.mcp.reconnect", "name": "project"},
            {"kind": "workspace.mcp.read", "uri": "project:///"},
            {"kind": "workspace.mcp.read", "uri": "project:///prompts"},
            {"kind": "workspace.mcp.read", "uri": "worker://plurnk/docs/project.md"},
            {"kind": "workspace.mcp.watch", "seconds": 0.001},
            call("deploy"),
            call("nothing"),
            {"kind": "workspace.mcp.cancel", "operation": "op-x"},
            {"kind": "workspace.mcp.fly"},
        ]
        for action in actions:
            schema = DOCUMENT["components"]["schemas"]["Action"]
            assert validator(schema).is_valid(action) is (action["kind"] != "workspace.mcp.fly"), action
            require_true(await doors.act(action), f"{W}/actions", "post")
        asked = (await doors.act(call("deploy"))).json()
        interaction = f"{w}/interactions/{asked['interrupts'][0]['id']}"
        operation = f"{w}/operations/{asked['operation']}"
        require_true(await doors.get(operation), f"{W}/operations/{{operation}}", "get")
        answer = await doors.post(interaction, {"status": "cancelled"})
        require_true(answer, f"{W}/interactions/{{interrupt}}", "post")
        require_true(await doors.get(operation), f"{W}/operations/{{operation}}", "get")
        require_true(await doors.get(f"{w}/servers"), f"{W}/servers", "get")
        require_true(await doors.post(f"{w}/servers", {"server": DEFINITION}), f"{W}/servers", "post")
        server, path = f"{w}/servers/project", f"{W}/servers/{{name}}"
        require_true(await doors.post(f"{server}/reconnect"), f"{path}/reconnect", "post")
        require_true(await doors.post(server, {"server": DEFINITION}, method="PUT"), path, "put")
        complete = await doors.post(f"{server}/oauth/complete", {"callbackUrl": "http://127.0.0.1/cb"})
        require_true(complete, f"{path}/oauth/complete", "post")
        require_true(await doors.post(server, method="DELETE"), path, "delete")
        for path in (
            "/v1/workspaces",
            "/v1/audit",
            "/v1/schemas/server-definition",
            "/openapi.json",
            "/healthz",
            "/readyz",
        ):
            require_true(await doors.get(path), path, "get")
        require_true(await doors.get("/v1/audit?limit=0"), "/v1/audit", "get")
        served = await doors.get("/openapi.json")
    assert served.json() == DOCUMENT


async def test_refusals_at_the_door_fit_the_document() -> None:
    async with doors_house(PLURNK_MAX_BODY="100") as doors, doors.client() as client:
        path, described = "/v1/workspaces/w/actions", f"{W}/actions"
        require_true(await doors.act({}, token="wrong"), described, "post")
        require_true(await client.post(path, content=b"{}"), described, "post")
        require_true(await client.post(path, json={"kind": "x" * 200}), described, "post")
        require_true(await client.post(path, json={}, headers={"Host": "evil.example"}), described, "post")
        require_true(await client.post("/", json={}), "/", "post")
        await doors.streams.end_all()
        require_true(await client.post(path, json={"kind": "workspace.mcp.list"}), described, "post")
        require_true(await doors.get("/readyz"), "/readyz", "get")
