"""What servers say on listen streams: events of scripted HTTP peers and steps of scripted children. SPEC §watch."""

from typing import Any, Final

from tests.support.scripted_http import HANG, Chunk, Reply, event, result, stream

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
TOOLS_FLAG: Final = {"toolsListChanged": True}
WATCHED: Final[dict[str, Any]] = {"tools": {"listChanged": True}}


def notification(method: str, identifier: Any = "$id", **params: Any) -> dict[str, Any]:
    """Return a notification of the subscription; ``"$id"`` becomes the id of its request."""
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION_ID: identifier}, **params}}


def acknowledged(notifications: Any = TOOLS_FLAG, identifier: Any = "$id") -> str:
    """Return the event that acknowledges a stream."""
    return event(notification(ACKNOWLEDGED, identifier, notifications=notifications))


def changed(capability: str, identifier: Any = "$id") -> str:
    """Return the event that tells of a list change."""
    return event(notification(f"notifications/{capability}/list_changed", identifier))


def ended() -> Reply:
    """Return a stream that is acknowledged and ends gracefully at once."""
    return stream(
        acknowledged(),
        event(
            {
                "jsonrpc": "2.0",
                "id": "$id",
                "result": {"resultType": "complete", "_meta": {SUBSCRIPTION_ID: "$id"}},
            }
        ),
    )


def open_stream(*chunks: Chunk, notifications: Any = TOOLS_FLAG) -> Reply:
    """Return a stream that is acknowledged, says this and stays open until the client leaves."""
    return stream(acknowledged(notifications), *chunks, HANG)


def discovered(capabilities: dict[str, Any] = WATCHED) -> Reply:
    """Return the discovery of a server with these capabilities."""
    return result({"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
