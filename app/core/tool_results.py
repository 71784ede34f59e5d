"""Whether a tool's result can be used, and what its caller gets. SPEC §calls; MCP 2026-07-28 server/tools.

What the peer answered goes to the caller as it came; only its form is judged, and its ``structuredContent``
against the tool's output schema.
"""

from types import MappingProxyType

from app.core.json_value import Json, JsonObject
from app.core.operation_problems import ToolResultInvalid
from app.core.schemas import SchemaInvalid, validate

_TEXTS_OF_BLOCK = MappingProxyType(
    {
        "text": ("text",),
        "image": ("data", "mimeType"),
        "audio": ("data", "mimeType"),
        "resource_link": ("uri", "name"),
    }
)
"""Type of a content block to the members it must have as text. Blocks of unknown types pass as they are."""


def tool_result(value: JsonObject, *, server: str, output_schema: bytes | None) -> JsonObject:
    """Return ``{isError, content, structuredContent?}`` of a complete result.

    A result that is an error of the tool is a completed call and is not held against the output schema.
    ``content`` may be absent beside ``structuredContent`` only: it is then empty.

    Raises:
        ToolResultInvalid: the result breaks the protocol or the output schema.
    """
    is_error = value.get("isError", False)
    if not isinstance(is_error, bool):
        raise ToolResultInvalid(server, "its isError is not a boolean")
    has_structured = "structuredContent" in value
    content = value.get("content", [] if has_structured else None)
    if not isinstance(content, list):
        raise ToolResultInvalid(server, "its content is not an array")
    for index, block in enumerate(content):
        if fault := block_fault(block):
            raise ToolResultInvalid(server, f"content block {index} {fault}")
    result: JsonObject = {"isError": is_error, "content": content}
    if has_structured:
        result["structuredContent"] = value["structuredContent"]
    if output_schema is not None and not is_error:
        _require_schema(value, server=server, output_schema=output_schema)
    return result


def block_fault(block: Json) -> str | None:
    """Return what is wrong with a content block, or None."""
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return "is not an object with a type"
    kind = str(block["type"])
    if kind == "resource":
        return contents_fault(block.get("resource"))
    missing = [name for name in _TEXTS_OF_BLOCK.get(kind, ()) if not isinstance(block.get(name), str)]
    return f"of type {kind} has no {missing[0]}" if missing else None


def contents_fault(contents: Json) -> str | None:
    """Return what is wrong with the contents of a resource, or None."""
    if not isinstance(contents, dict) or not isinstance(contents.get("uri"), str):
        return "has no resource with a uri"
    if isinstance(contents.get("text"), str) or isinstance(contents.get("blob"), str):
        return None
    return "has a resource with neither text nor blob"


def _require_schema(value: JsonObject, *, server: str, output_schema: bytes) -> None:
    if "structuredContent" not in value:
        raise ToolResultInvalid(server, "the tool has an output schema and the result no structuredContent")
    try:
        errors = validate(output_schema, value["structuredContent"])
    except SchemaInvalid:
        raise ToolResultInvalid(server, "the tool's output schema cannot be used") from None
    if errors:
        raise ToolResultInvalid(
            server, "its structuredContent breaks the tool's output schema", errors=errors
        )
