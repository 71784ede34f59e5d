"""What the canned backend says to each JSON-RPC request, in both protocol eras. No I/O.

A legacy client (``initialize``, revision 2025-06-18) and a modern one (``server/discover``, 2026-07-28) find the same
ten tools, so that peers of either era can be compared on one server.
"""

from typing import Any

import orjson

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
TOOLS = 10
WIDE = 20
"""Tools of a wide server."""
SMALL = 100
"""Bytes of the text that a call answers where its arguments name no size."""
_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_KEPT = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"}
_CAPABILITIES = {"tools": {}}
_INFO = {"name": "canned", "version": "1"}
_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
    "required": ["text"],
}
_TOOLS = [
    {
        "name": f"tool-{number}",
        "description": f"Answers with some text, number {number}.",
        "inputSchema": _SCHEMA,
    }
    for number in range(WIDE)
]


def answer(message: dict[str, Any], *, tools: int = TOOLS, is_public: bool = False) -> bytes | None:
    """Return the bytes that answer the message for a server of so many tools, None where it is a notification.

    What is public may be kept for an hour, by everybody.
    """
    if "id" not in message:
        return None
    params = message.get("params") or {}
    result = _result(message["method"], params, tools)
    if result is None:
        body: dict[str, Any] = {"error": {"code": -32601, "message": "unknown"}}
    elif "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {}):
        body = {"result": {**(_KEPT if is_public else _FRESH), **result}}
    else:
        body = {"result": result}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], **body})


def _result(method: str, params: dict[str, Any], tools: int) -> dict[str, Any] | None:
    match method:
        case "tools/call":
            return {"content": [{"type": "text", "text": "x" * params["arguments"].get("size", SMALL)}]}
        case "tools/list":
            return {"tools": _TOOLS[:tools]}
        case "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": _CAPABILITIES, "serverInfo": _INFO}
        case "initialize":
            return {"protocolVersion": LEGACY, "capabilities": _CAPABILITIES, "serverInfo": _INFO}
        case "ping":
            return {}
        case _:
            return None
