"""Whether a call is sent once more after its server said that headers and body differ. SPEC §connection.

MCP 2026-07-28 basic/transports/streamable-http, Client Behavior. Headers and body are never reconciled by guessing:
only where the tool, as it is listed now, mirrors other headers, the call goes again with those.
"""

import orjson

from app.connections.classify import HEADER_MISMATCH
from app.connections.prepare import Preparation
from app.core.answers import Answer, RemoteError
from app.core.json_value import JsonObject
from app.core.param_headers import AnnotationInvalid
from app.core.param_headers import headers as param_headers
from app.core.problem import Problem


def is_header_mismatch(answer: Answer) -> bool:
    """Return whether the server says so."""
    return isinstance(answer, RemoteError) and answer.code == HEADER_MISMATCH


async def changed_schema(listing: Preparation, params: JsonObject, input_schema: bytes) -> bytes | None:
    """Return the tool's input schema as it is listed now where it mirrors other headers, else None.

    A list that fails changes nothing: the error that was answered stands.
    """
    try:
        tools = (await listing.drain("tools/list")).entries
    except Problem:
        return None
    arguments = params.get("arguments")
    listed = next((tool.raw for tool in tools if tool.name == params.get("name")), None)
    if listed is None or not isinstance(arguments, dict):
        return None
    current = orjson.dumps(orjson.loads(listed)["inputSchema"])
    try:
        is_changed = param_headers(current, arguments) != param_headers(input_schema, arguments)
    except AnnotationInvalid:
        return None
    return current if is_changed else None
