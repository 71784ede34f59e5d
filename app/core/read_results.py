"""Whether the result of a read, a prompt or a completion can be used, and what of it the caller gets.

SPEC §addresses, §actions; MCP 2026-07-28 server/resources, server/prompts, server/utilities/completion.
"""

from app.core.answers import plain_number
from app.core.json_value import Json, JsonObject
from app.core.operation_problems import ToolResultInvalid
from app.core.tool_results import block_fault, contents_fault

COMPLETION_VALUES_MAX = 100


def resource_result(value: JsonObject, *, server: str) -> JsonObject:
    """Return ``{contents}`` of a result of ``resources/read``.

    Raises:
        ToolResultInvalid: the result breaks the protocol.
    """
    contents = value.get("contents")
    if not isinstance(contents, list):
        raise ToolResultInvalid(server, "its contents are not an array")
    for index, each in enumerate(contents):
        if fault := contents_fault(each):
            raise ToolResultInvalid(server, f"contents {index} {fault}")
    return {"contents": contents}


def prompt_result(value: JsonObject, *, server: str) -> JsonObject:
    """Return ``{description?, messages}`` of a result of ``prompts/get``.

    Raises:
        ToolResultInvalid: the result breaks the protocol.
    """
    messages, description = value.get("messages"), value.get("description")
    if not isinstance(messages, list):
        raise ToolResultInvalid(server, "its messages are not an array")
    for index, message in enumerate(messages):
        if fault := _message_fault(message):
            raise ToolResultInvalid(server, f"message {index} {fault}")
    if description is None:
        return {"messages": messages}
    if not isinstance(description, str):
        raise ToolResultInvalid(server, "its description is not text")
    return {"description": description, "messages": messages}


def completion_result(value: JsonObject, *, server: str) -> JsonObject:
    """Return ``{completion: {values, total?, hasMore?}}`` of a result of ``completion/complete``.

    Raises:
        ToolResultInvalid: the result breaks the protocol; more than 100 values do.
    """
    completion = value.get("completion")
    if not isinstance(completion, dict):
        raise ToolResultInvalid(server, "it has no completion object")
    values = completion.get("values")
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise ToolResultInvalid(server, "its values are not an array of texts")
    if len(values) > COMPLETION_VALUES_MAX:
        raise ToolResultInvalid(server, f"it has more than {COMPLETION_VALUES_MAX} values")
    shown: JsonObject = {"values": values}
    total, has_more = completion.get("total"), completion.get("hasMore")
    if total is not None:
        shown["total"] = _count(total, server=server)
    if has_more is not None:
        if not isinstance(has_more, bool):
            raise ToolResultInvalid(server, "its hasMore is not a boolean")
        shown["hasMore"] = has_more
    return {"completion": shown}


def _count(total: Json, *, server: str) -> Json:
    if isinstance(total, bool) or not isinstance(total, int | float):
        raise ToolResultInvalid(server, "its total is not a number")
    return plain_number(total)


def _message_fault(message: Json) -> str | None:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return "has no role user or assistant"
    return block_fault(message.get("content"))
