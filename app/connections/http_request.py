"""What of a request HTTP adds to its message: the headers that mirror it.

SPEC §connection; MCP 2026-07-28 basic/transports/streamable-http, Request Metadata.
"""

from typing import Final

from app.connections.wire import CLIENT_INFO
from app.core.answers import RequestNotSent
from app.core.json_value import JsonObject
from app.core.param_headers import AnnotationInvalid, encode_value
from app.core.param_headers import headers as param_headers

_NAME_MEMBER: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def request_headers(method: str, params: JsonObject, input_schema: bytes | None) -> dict[str, str]:
    """Return the headers that mirror a request's body. MCP 2026-07-28 basic/transports/streamable-http.

    Raises:
        RequestNotSent: the tool's annotations break the rules.
    """
    headers = {"Mcp-Method": method}
    name = params.get("taskId" if method.startswith("tasks/") else _NAME_MEMBER.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    arguments = params.get("arguments")
    if method == "tools/call" and input_schema is not None and isinstance(arguments, dict):
        try:
            headers.update(param_headers(input_schema, arguments))
        except AnnotationInvalid:
            raise RequestNotSent("the x-mcp-header annotations of its tool break the rules") from None
    return headers


def user_agent() -> str:
    """Return our name and version as a product token. RFC 9110 §10.1.5."""
    return f"{CLIENT_INFO['name']}/{CLIENT_INFO['version']}"
