"""The JSON Schemas of everything the doors take and answer, for OpenAPI. SPEC §actions, §problems, §agui.

For documentation only: nothing is validated against them at run time. Tests hold real answers against them,
so they are closed: a member that is not here is a member that is not answered. Parameters come from the
actions' own models.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from app.actions.action import Action
from app.actions.table import ACTIONS
from app.core import door_problems, oauth_problems, operation_problems, problems
from app.core.definitions import SCHEMA
from app.core.json_value import Json, JsonObject
from app.core.names import WORKSPACE_NAME_PATTERN
from app.core.problem import Outcome, Problem, Stage
from app.rest.models import InterruptAnswer

_TEXT: JsonObject = {"type": "string"}
WORKSPACE_NAME: JsonObject = {"type": "string", "pattern": f"^{WORKSPACE_NAME_PATTERN}$"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_FLAG: JsonObject = {"type": "boolean"}
_ANY_OBJECT: JsonObject = {"type": "object"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_OBJECTS: JsonObject = {"type": "array", "items": _ANY_OBJECT}


def ref(name: str) -> JsonObject:
    """Return a reference to a component schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def closed(required: JsonObject, optional: JsonObject | None = None) -> JsonObject:
    """Return the schema of an object with these members and no other."""
    names: list[Json] = [*required]
    members: JsonObject = {**required, **(optional or {})}
    return {"type": "object", "properties": members, "required": names, "additionalProperties": False}


def _array(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _enum(values: Iterable[str]) -> JsonObject:
    listed: list[Json] = [*values]
    return {"type": "string", "enum": listed}


def _status(value: int) -> JsonObject:
    return {"const": value}


_SUMMARY = closed(
    {
        "name": _TEXT,
        "source": _enum(("service", "workspace")),
        "state": _enum(("connected", "authorization-required", "unavailable", "preparing")),
        "enabledTools": {"anyOf": [_TEXTS, {"type": "null"}]},
        "read": _TEXTS,
        "withheld": _array(closed({"name": _TEXT, "reason": _TEXT})),
    },
    {
        "transport": _enum(("stdio", "http")),
        "protocolVersion": _TEXT,
        "server": {"anyOf": [_ANY_OBJECT, {"type": "null"}]},
        "capabilities": _ANY_OBJECT,
        "instructions": _TEXT,
        "tools": _TEXTS,
        "resources": _COUNT,
        "resourceTemplates": _COUNT,
        "prompts": _COUNT,
        "revision": _TEXT,
        "live": _FLAG,
        "problem": ref("Problem"),
    },
)
_AUTHORIZATION = closed({"url": _TEXT, "expiresAt": _TEXT})
_TOOL = closed(
    {
        "server": _TEXT,
        "tool": _TEXT,
        "effect": _enum(("read", "host")),
        "description": {"anyOf": [_TEXT, {"type": "null"}]},
        "required": _TEXTS,
        "signature": _TEXT,
    },
    {"inputSchema": {}, "outputSchema": {}},
)
_STATE = closed(
    {
        "workspace": _TEXT,
        "rev": _COUNT,
        "servers": _ANY_OBJECT,
        "pending": _ANY_OBJECT,
        "operations": _ANY_OBJECT,
        "interactions": _ANY_OBJECT,
    }
)
_INTERRUPT = closed(
    {
        "id": _TEXT,
        "reason": _TEXT,
        "message": _TEXT,
        "responseSchema": _ANY_OBJECT,
        "expiresAt": _TEXT,
        "metadata": _ANY_OBJECT,
    },
    {"toolCallId": _TEXT},
)
AUDIT = closed(
    {
        "audit": _array(
            closed(
                {
                    "at": {"type": "string", "format": "date-time"},
                    "actor": _enum(("operator", "workspace")),
                    "workspace": _TEXT,
                    "kind": _TEXT,
                    "outcome": _TEXT,
                },
                {"server": _TEXT},
            )
        )
    }
)
_RESULTS: dict[str, JsonObject] = {
    "ServerList": closed(
        {
            "servers": _array(ref("ServerSummary")),
            "detached": _TEXTS,
            "pending": _array(
                closed({"name": _TEXT, "action": _TEXT, "authorization": ref("Authorization")})
            ),
        }
    ),
    "Attached": closed({"status": _status(201), "server": ref("ServerSummary")}),
    "Changed": closed({"status": _status(200), "server": ref("ServerSummary")}),
    "Detached": closed({"status": _status(200), "name": _TEXT, "detached": {"const": True}}),
    "AuthorizationPending": closed({"status": _status(202), "authorization": ref("Authorization")}),
    "Completion": closed(
        {"completion": closed({"values": _TEXTS}, {"total": {"type": "number"}, "hasMore": _FLAG})}
    ),
    "ToolList": closed({"tools": _array(ref("Tool"))}),
    "CallResult": closed(
        {
            "status": _status(200),
            "operation": _TEXT,
            "toolCallId": _TEXT,
            "isError": _FLAG,
            "content": _OBJECTS,
        },
        {"structuredContent": {}},
    ),
    "Rejected": closed({"status": _status(200), "operation": _TEXT, "rejected": {"const": True}}),
    "ResourceList": closed({"resources": _OBJECTS, "resourceTemplates": _OBJECTS}),
    "Contents": closed({"contents": _OBJECTS}),
    "PromptList": closed({"prompts": _OBJECTS}),
    "Prompt": closed({"messages": _OBJECTS}, {"description": _TEXT}),
    "Cancelled": closed({"status": _status(200), "operation": _TEXT, "cancelled": {"const": True}}),
    "Watched": closed({"status": _status(200), "state": ref("State")}),
    "Working": closed({"status": _status(202), "operation": _TEXT, "state": {"const": "working"}}),
    "Interrupted": closed({"operation": _TEXT, "interrupts": _array(ref("Interrupt"))}),
}

_CHANGE = ("Changed", "AuthorizationPending")
RESUMED = ("CallResult", "Rejected", "Contents", "Prompt", "Interrupted")
"""What an operation that asked can come to."""
RESULTS: dict[str, tuple[str, ...]] = {
    "workspace.mcp.list": ("ServerList",),
    "workspace.mcp.attach": ("Attached", "AuthorizationPending"),
    "workspace.mcp.replace": _CHANGE,
    "workspace.mcp.detach": ("Detached",),
    "workspace.mcp.reconnect": _CHANGE,
    "workspace.mcp.restore": _CHANGE,
    "workspace.mcp.oauth.complete": ("Attached", *_CHANGE, *RESUMED),
    "workspace.mcp.complete": ("Completion",),
    "workspace.mcp.tools": ("ToolList",),
    "workspace.mcp.call": ("CallResult", "Rejected", "Interrupted"),
    "workspace.mcp.read": ("ResourceList", "Contents", "PromptList", "Prompt", "Interrupted"),
    "workspace.mcp.cancel": ("Cancelled",),
    "workspace.mcp.watch": ("Watched",),
}
"""What each kind of action can answer on REST, by component; a Problem is not repeated."""
_ACCEPTED = frozenset({"AuthorizationPending", "Interrupted", "Working"})


def status_of(component: str) -> str:
    """Return the HTTP status that this component is answered with."""
    if component in _ACCEPTED:
        return "202"
    return "201" if component == "Attached" else "200"


def problem_kinds() -> Iterator[type[Problem]]:
    """Yield every kind of Problem there is."""
    for module in (problems, operation_problems, oauth_problems, door_problems):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Problem) and value.__module__ == module.__name__:
                yield value


def action_name(kind: str) -> str:
    """Return the component name of an action: ``workspace.mcp.oauth.complete`` is ``OauthCompleteAction``."""
    words = kind.removeprefix("workspace.mcp.").split(".")
    return "".join(word.capitalize() for word in words) + "Action"


def action_schema(action: Action[Any]) -> JsonObject:
    """Return the schema of one action object: its kind and the parameters of its own model."""
    model = _model_schema(action.params)
    properties = model.get("properties")
    members: JsonObject = dict(properties) if isinstance(properties, dict) else {}
    if action.kind in ("workspace.mcp.attach", "workspace.mcp.replace"):
        members["server"] = ref("ServerDefinition")
    required = model.get("required")
    names: list[Json] = ["kind", *(required if isinstance(required, list) else [])]
    return {
        "type": "object",
        "description": action.summary,
        "properties": {"kind": {"const": action.kind}, **members},
        "required": names,
        "additionalProperties": False,
    }


def _model_schema(model: type[BaseModel]) -> JsonObject:
    return model.model_json_schema(ref_template="#/components/schemas/{model}")


def _parts(action: Action[Any]) -> JsonObject:
    """Return the models that an action's parameters are made of, by name."""
    parts = _model_schema(action.params).get("$defs")
    return parts if isinstance(parts, dict) else {}


def components() -> JsonObject:
    """Return every component schema by its name."""
    actions: JsonObject = {action_name(kind): action_schema(action) for kind, action in ACTIONS.items()}
    parts: JsonObject = {}
    for action in ACTIONS.values():
        parts |= _parts(action)
    one_of: list[Json] = [ref(name) for name in actions]
    mapping: JsonObject = {kind: f"#/components/schemas/{action_name(kind)}" for kind in ACTIONS}
    return {
        "Action": {"oneOf": one_of, "discriminator": {"propertyName": "kind", "mapping": mapping}},
        **actions,
        **parts,
        **_RESULTS,
        "ServerSummary": _SUMMARY,
        "Authorization": _AUTHORIZATION,
        "Tool": _TOOL,
        "State": _STATE,
        "Interrupt": _INTERRUPT,
        "InterruptAnswer": _interrupt_answer(),
        "ServerDefinition": {name: value for name, value in SCHEMA.items() if name != "$schema"},
        "Problem": _problem(),
        "BlankProblem": closed(
            {"type": {"const": "about:blank"}, "title": _TEXT, "status": _COUNT, "detail": _TEXT}
        ),
        "RunAgentInput": _run_agent_input(),
        "ResumeEntry": closed(
            {"interruptId": _TEXT, "status": _enum(("resolved", "cancelled"))},
            {"payload": {}, "metadata": _ANY_OBJECT},
        ),
    }


def _interrupt_answer() -> JsonObject:
    return {name: value for name, value in _model_schema(InterruptAnswer).items() if name != "title"}


def _problem() -> JsonObject:
    """Return the schema of every Problem; which facts it carries depends on its code. RFC 9457."""
    return {
        "type": "object",
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": _COUNT,
            "detail": _TEXT,
            "code": _enum(sorted(kind.code for kind in problem_kinds())),
            "retryable": _FLAG,
            "stage": _enum(Stage),
            "outcome": _enum(Outcome),
        },
        "required": ["type", "title", "status", "detail", "code", "retryable", "stage"],
    }


def _run_agent_input() -> JsonObject:
    """Return the schema of AG-UI 1.0 RunAgentInput, as far as a management run looks at it."""
    plurnk: JsonObject = {
        "type": "object",
        "properties": {"workspace": WORKSPACE_NAME, "action": ref("Action")},
        "required": ["workspace"],
    }
    return {
        "type": "object",
        "properties": {
            "threadId": _TEXT,
            "runId": _TEXT,
            "protocolVersion": _TEXT,
            "parentRunId": _TEXT,
            "messages": {"type": "array"},
            "state": {},
            "tools": _OBJECTS,
            "context": _OBJECTS,
            "forwardedProps": {
                "type": "object",
                "properties": {"plurnk": plurnk},
                "required": ["plurnk"],
            },
            "resume": _array(ref("ResumeEntry")),
        },
        "required": ["threadId", "runId", "messages", "forwardedProps"],
    }
