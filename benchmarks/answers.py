"""What the canned backend says to each JSON-RPC request, in both protocol eras. No I/O.

A legacy client (``initialize``, revision 2025-06-18) and a modern one (``server/discover``, 2026-07-28) find the same
ten tools, so that peers of either era can be compared on one server.
"""

from typing import Any

import orjson

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
TOOLS = 10
SMALL = 100
"""Bytes of the text that a call answers where its arguments name no size."""
_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_CAPABILITIES = {"tools": {}}
_INFO = {"name": "canned", "version": "1"}
_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
    "required": ["text"],
}
_LIST = {
    "tools": [
        {
            "name": f"tool-{number}",
            "description": f"Answers with some text, number {number}.",
            "inputSchema": _SCHEMA,
        }
        for number in range(TOOLS)
    ]
}


def answer(message: dict[str, Any]) -> bytes | None:
    """Return the bytes that answer the message, None where it is a notification."""
    if "id" not in message:
        return None
    params = message.get("params") or {}
    result = _result(message["method"], params)
    if result is None:
        body: dict[str, Any] = {"error": {"code": -32601, "message": "unknown"}}
    elif "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {}):
        body = {"result": {**_FRESH, **result}}
    else:
        body = {"result": result}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], **body})


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "tools/call":
            return {"content": [{"type": "text", "text": "x" * params["arguments"].get("size", SMALL)}]}
        case "tools/list":
            return _LIST
        case "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": _CAPABILITIES, "serverInfo": _INFO}
        case "initialize":
            return {"protocolVersion": LEGACY, "capabilities": _CAPABILITIES, "serverInfo": _INFO}
        case "ping":
            return {}
        case _:
            return None
