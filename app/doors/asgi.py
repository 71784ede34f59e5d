"""The words of ASGI that the doors use, and the one way a whole answer is sent. ASGI 3.0 HTTP.

Knows nothing of actions or Problems.
"""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Endpoint: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
HeaderValues: TypeAlias = dict[bytes, list[bytes]]
"""By their name in lower case, as ASGI gives names."""

JSON = b"application/json"
_BY_NAME = "plurnk.headers"
"""The key of a scope whose headers were looked into: their values by name."""
SENDER = "plurnk.sender"
"""The key of a scope whose server can send a whole answer at once: a ``send`` with ``at_once``."""
SendAtOnce: TypeAlias = Callable[[int, bytes, bytes], bool]
"""Takes status, media type and body of a whole answer; returns False where it has to be sent message by message."""
WHOLE_BODY = "plurnk.body"
"""The key of a scope whose request came with its whole body; our HTTP protocol sets it."""


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Return every value of the header, in order."""
    return headers_of(scope).get(name, [])


def headers_of(scope: Scope) -> HeaderValues:
    """Return the values of each header, in order."""
    by_name: HeaderValues | None = scope.get(_BY_NAME)
    if by_name is None:
        headers: Headers = scope["headers"]
        by_name = {name: [value] for name, value in headers}
        if len(by_name) < len(headers):
            by_name.clear()
            for name, value in headers:
                by_name.setdefault(name, []).append(value)
        scope[_BY_NAME] = by_name
    return by_name


async def send_whole(
    send: Send, status: int, body: bytes, *, media_type: bytes = JSON, headers: Headers = ()
) -> None:
    """Send one complete response; nothing stores it."""
    at_once: SendAtOnce | None = None if headers else getattr(send, "at_once", None)
    if at_once is not None and at_once(status, media_type, body):
        return
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", media_type),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
