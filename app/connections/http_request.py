"""What of a request HTTP adds to its message: the headers that mirror it.

SPEC §connection; MCP 2026-07-28 basic/transports/streamable-http, Request Metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from app.connections.wire import CLIENT_INFO
from app.core.answers import RequestNotSent
from app.core.json_value import JsonObject
from app.core.param_headers import AnnotationInvalid, encode_value
from app.core.param_headers import headers as param_headers

REMEMBERED_MAX: Final = 64
"""Names of one connection whose headers are remembered, each of at most so many characters as follow."""
REMEMBERED_LENGTH_MAX: Final = 256
_NAME_MEMBER: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def lines_of(texts: Sequence[str]) -> str:
    """Return the texts as the lines of a head.

    Raises:
        ValueError: one would break out of its line.
    """
    text = "".join([f"{each}\r\n" for each in texts])
    if text.count("\r") != len(texts) or text.count("\n") != len(texts) or "\0" in text:
        raise ValueError("a header with a line break")
    return text


@dataclass(frozen=True, slots=True)
class HeaderLines:
    """Headers as they are written."""

    text: str
    """Each with its line end."""
    names: frozenset[str]
    """In lower case."""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "HeaderLines":
        """Return the lines of these headers.

        Raises:
            ValueError: one would break out of its line.
        """
        text = lines_of([f"{name}: {value}" for name, value in headers.items()])
        return cls(text, frozenset(name.lower() for name in headers))

    def and_of(self, headers: Mapping[str, str]) -> "HeaderLines":
        """Return these lines and those of other headers.

        Raises:
            ValueError: one would break out of its line.
        """
        others = HeaderLines.of(headers)
        return HeaderLines(self.text + others.text, self.names | others.names)


Remembered: TypeAlias = dict[tuple[str, str], HeaderLines]
"""The headers of methods with the names that they were used with; a connection's own, and gone with it."""


def request_headers(
    method: str, params: JsonObject, input_schema: bytes | None, remembered: Remembered
) -> HeaderLines:
    """Return the headers that mirror a request's body. MCP 2026-07-28 basic/transports/streamable-http.

    Raises:
        RequestNotSent: the tool's annotations break the rules.
    """
    name = params.get("taskId" if method.startswith("tasks/") else _NAME_MEMBER.get(method, ""))
    if not isinstance(name, str):
        lines = _nameless(method)
    elif (known := remembered.get((method, name))) is not None:
        lines = known
    else:
        lines = HeaderLines.of({"Mcp-Method": method, "Mcp-Name": encode_value(name)})
        if len(remembered) < REMEMBERED_MAX and len(name) <= REMEMBERED_LENGTH_MAX:
            remembered[method, name] = lines
    if input_schema is None or method != "tools/call":
        return lines
    arguments = params.get("arguments")
    try:
        mirrored = param_headers(input_schema, arguments) if isinstance(arguments, dict) else None
    except AnnotationInvalid:
        raise RequestNotSent("the x-mcp-header annotations of its tool break the rules") from None
    return lines.and_of(mirrored) if mirrored else lines


@lru_cache(maxsize=64)
def _nameless(method: str) -> HeaderLines:
    return HeaderLines.of({"Mcp-Method": method})


def user_agent() -> str:
    """Return our name and version as a product token. RFC 9110 §10.1.5."""
    return f"{CLIENT_INFO['name']}/{CLIENT_INFO['version']}"
