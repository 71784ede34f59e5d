"""A peer that answers every method a client can ask for, and those questions. SPEC §connection, §addresses.

An own variant whose peer is ``whole`` has these answers where it says nothing else; ``$each`` in its ``on`` and
``replies`` stands for the four methods, and ``good`` for the good answer of the method.
"""

import json
from typing import Any, Final

from tests.support.scripted_http import FRESH, REVISION

Json = dict[str, Any]
RESULTS: Final[dict[str, Json]] = {
    "tools/call": {"content": [{"type": "text", "text": "ok"}]},
    "resources/read": {"contents": [{"uri": "a://b", "text": "ok"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "ok"}}]},
    "completion/complete": {"completion": {"values": ["ok"]}},
}
ACTIONS: Final[dict[str, Json]] = {
    "tools/call": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {}},
    "resources/read": {"kind": "workspace.mcp.read", "uri": "p:///resources/a%3A%2F%2Fb"},
    "prompts/get": {"kind": "workspace.mcp.read", "uri": "p:///prompts/x"},
    "completion/complete": {
        "kind": "workspace.mcp.complete",
        "server": "p",
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "a", "value": "b"},
    },
}
"""What a client asks for to have the daemon send the method."""

_CAPABILITIES: Json = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
_WHOLE: dict[str, Json] = {
    "server/discover": {"supportedVersions": [REVISION], "capabilities": _CAPABILITIES},
    "prompts/list": {"prompts": [{"name": "x"}]},
    **RESULTS,
}


def steps_of(peer: Json) -> dict[str, list[Json]]:
    """Return the steps of ``on``, whole where the peer is."""
    given = each_method(peer.get("on", {}))
    if not peer.get("whole"):
        return given
    return {**{method: [{"result": value}] for method, value in _WHOLE.items()}, **given}


def each_method(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told by method, ``$each`` being the four."""
    named = {method: value for method, value in told.items() if method != "$each"}
    return {**{method: _good(told["$each"], method) for method in RESULTS if "$each" in told}, **named}


def good_text(method: str, members: Json | None = None) -> str:
    """Return the good answer of a method as JSON, its id still to be filled in."""
    message = {"jsonrpc": "2.0", "id": "$id", "result": {**FRESH, **RESULTS[method]}, **(members or {})}
    return json.dumps(message, ensure_ascii=False).replace('"$id"', "$id")


def _good(told: Any, method: str) -> Any:
    """Return the value with ``good`` filled in: as a result, or as a text with its JSON for each ``%``."""
    match told:
        case {"good": str(text)}:
            return text.replace("%", good_text(method))
        case {"good": _, **rest}:
            return {**rest, "result": RESULTS[method]}
        case dict():
            return {name: _good(each, method) for name, each in told.items()}
        case list():
            return [_good(each, method) for each in told]
        case _:
            return told
