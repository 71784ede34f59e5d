"""The OpenAPI 3.1 document of both doors, written beside the routes it describes. SPEC §agui.

It is served as it is, and a test holds it against the routes and their real answers, both ways.
"""

from collections.abc import Iterable

from app.core.json_value import Json, JsonObject
from app.core.text_rules import SERVER_NAME
from app.rest.audit import ROWS, ROWS_MAX
from app.rest.schemas import (
    AUDIT,
    RESULTS,
    RESUMED,
    WORKSPACE_NAME,
    closed,
    components,
    problem_kinds,
    ref,
    status_of,
)

_DOOR = ("401", "403", "503")
"""What the gate and a daemon that goes down answer on every route but health."""
_BODY = ("413", "415", "422")
_PROBLEM_JSON = "application/problem+json"
_PARAMETERS: dict[str, tuple[str, JsonObject]] = {
    "workspace": ("1 to 128 of A-Z a-z 0-9 . _ - and no dot at the start.", WORKSPACE_NAME),
    "name": (
        f"The server's name. {SERVER_NAME.description}",
        {"type": "string", "pattern": SERVER_NAME.pattern},
    ),
    "interrupt": ("The interrupt's id.", {"type": "string"}),
    "operation": ("The operation's id.", {"type": "string"}),
}
"""What each parameter of a path is: its description and its schema."""
_ANY_ACTION = tuple(dict.fromkeys(name for names in RESULTS.values() for name in names))


def document() -> JsonObject:
    """Return the whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "plurnk-mcpd",
            "version": "1",
            "description": "An MCP host for many workspaces: AG-UI runs, and the same actions for scripts.",
        },
        "security": [{"bearer": []}],
        "paths": _paths(),
        "components": {
            "schemas": components(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> JsonObject:
    workspace = "/v1/workspaces/{workspace}"
    server = f"{workspace}/servers/{{name}}"
    return {
        "/": {"post": _run("Run an AG-UI agent.")},
        "/agui": {"post": _run("The same as POST /.")},
        f"{workspace}/actions": {
            "post": _operation(
                "Perform one action.",
                answers=_ANY_ACTION,
                problems=_action_problems(*_BODY),
                path=("workspace",),
                body=ref("Action"),
            )
        },
        f"{workspace}/interactions/{{interrupt}}": {
            "post": _operation(
                "Answer one interrupt; the last one of its operation answers as the action would.",
                answers=RESUMED,
                problems=_action_problems(*_BODY),
                path=("workspace", "interrupt"),
                body=ref("InterruptAnswer"),
            )
        },
        f"{workspace}/operations/{{operation}}": {
            "get": _operation(
                "Repeat the end of an operation, kept for ten minutes, or say where it stands.",
                answers=(*RESUMED, "Working"),
                problems=_action_problems(),
                path=("workspace", "operation"),
            )
        },
        f"{workspace}/servers": {
            "get": _twin("workspace.mcp.list", ("workspace",)),
            "post": _twin(
                "workspace.mcp.attach", ("workspace",), closed({"server": ref("ServerDefinition")})
            ),
        },
        server: {
            "put": _twin("workspace.mcp.replace", ("workspace", "name"), _replacement()),
            "delete": _twin("workspace.mcp.detach", ("workspace", "name")),
        },
        f"{server}/reconnect": {
            "post": _twin(
                "workspace.mcp.reconnect", ("workspace", "name"), closed({}), is_body_required=False
            )
        },
        f"{server}/oauth/complete": {
            "post": _twin(
                "workspace.mcp.oauth.complete",
                ("workspace", "name"),
                closed({"callbackUrl": {"type": "string"}}),
            )
        },
        **_daemon_paths(),
    }


def _daemon_paths() -> JsonObject:
    names: JsonObject = {"type": "array", "items": {"type": "string"}}
    return {
        "/v1/workspaces": {
            "get": _plain(
                "List the workspaces that are stored or in use; the operator's.",
                closed({"workspaces": names}),
            )
        },
        "/metrics": {
            "get": _plain(
                "What the daemon counted, in the text format of Prometheus; the operator's.",
                {"type": "string"},
                "text/plain",
            )
        },
        "/v1/audit": {"get": _audit()},
        "/v1/schemas/server-definition": {
            "get": _plain(
                "The JSON Schema of a server definition.", {"type": "object"}, "application/schema+json"
            )
        },
        "/openapi.json": {"get": _plain("This document.", {"type": "object"})},
        "/healthz": {"get": _health("The daemon is alive.", "alive", ("403",))},
        "/readyz": {"get": _health("The daemon takes up requests.", "ready", ("403", "503"))},
    }


def _audit() -> JsonObject:
    limit: JsonObject = {"type": "integer", "minimum": 1, "maximum": ROWS_MAX, "default": ROWS}
    asked: list[Json] = [
        {"name": "workspace", "in": "query", "description": "Of this one alone.", "schema": WORKSPACE_NAME},
        {"name": "limit", "in": "query", "description": "How many at most.", "schema": limit},
    ]
    plain = _plain(
        "The newest rows of the audit table, the newest first; the operator's.", AUDIT, more=("400",)
    )
    return {**plain, "parameters": asked}


def _run(summary: str) -> JsonObject:
    stream: JsonObject = {
        "description": "AG-UI 1.0 events, server-sent; everything about the action is in the stream.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": ref("RunAgentInput")}}},
        "responses": {"200": stream, **_problems(("400", "408", *_BODY, "429", "500", *_DOOR))},
    }


def _twin(
    kind: str, path: tuple[str, ...], body: JsonObject | None = None, *, is_body_required: bool = True
) -> JsonObject:
    return _operation(
        f"The same as the action {kind}.",
        answers=RESULTS[kind],
        problems=_action_problems(*(_BODY if body is not None else ())),
        path=path,
        body=body,
        is_body_required=is_body_required,
    )


def _operation(
    summary: str,
    *,
    answers: Iterable[str],
    problems: tuple[str, ...],
    path: tuple[str, ...],
    body: JsonObject | None = None,
    is_body_required: bool = True,
) -> JsonObject:
    by_status: dict[str, list[Json]] = {}
    for component in answers:
        by_status.setdefault(status_of(component), []).append(ref(component))
    results: JsonObject = {
        status: {
            "description": "The result.",
            "content": {"application/json": {"schema": {"anyOf": schemas}}},
        }
        for status, schemas in by_status.items()
    }
    parameters: list[Json] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name][0],
            "schema": _PARAMETERS[name][1],
        }
        for name in path
    ]
    operation: JsonObject = {"summary": summary, "parameters": parameters}
    if body is not None:
        operation["requestBody"] = {
            "required": is_body_required,
            "content": {"application/json": {"schema": body}},
        }
    return {**operation, "responses": {**results, **_problems(problems)}}


def _plain(
    summary: str, schema: JsonObject, media_type: str = "application/json", *, more: tuple[str, ...] = ()
) -> JsonObject:
    answer: JsonObject = {"description": summary, "content": {media_type: {"schema": schema}}}
    return {"summary": summary, "responses": {"200": answer, **_problems((*_DOOR, "500", *more))}}


def _health(summary: str, status: str, problems: tuple[str, ...]) -> JsonObject:
    schema = closed({"status": {"const": status}})
    answer: JsonObject = {"description": summary, "content": {"application/json": {"schema": schema}}}
    return {"summary": summary, "security": [], "responses": {"200": answer, **_problems(problems)}}


def _action_problems(*more: str) -> tuple[str, ...]:
    late = ("408",) if more else ()
    return ("400", *_DOOR, "404", "409", "410", "429", "500", "502", "504", *late, *more)


def _problems(statuses: tuple[str, ...]) -> JsonObject:
    """Return one response for each status, naming the codes that can be met there."""
    codes: dict[str, list[str]] = {}
    for kind in problem_kinds():
        codes.setdefault(str(kind.status), []).append(kind.code)
    answers: JsonObject = {}
    for status in sorted(set(statuses)):
        named = ", ".join(sorted(codes.get(status, ["about:blank"])))
        schema = ref("Problem" if status in codes else "BlankProblem")
        answers[status] = {"description": named, "content": {_PROBLEM_JSON: {"schema": schema}}}
    return answers


def _replacement() -> JsonObject:
    """Return the body of PUT: the definition's name may be left out, the path has it."""
    return closed({"server": {"type": "object", "description": "A ServerDefinition; the path has its name."}})
