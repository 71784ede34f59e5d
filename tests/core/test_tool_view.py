"""One tool entry taken apart."""

import orjson
import pytest

from app.core.tool_view import tool_view


@pytest.mark.spec("actions")
def test_a_view_has_what_calls_and_lists_need() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {}},
        "required": ["b"],
        "x-own": 1,
    }
    output = {"type": "array"}
    view = tool_view(
        orjson.dumps({"name": "t", "description": "d", "inputSchema": schema, "outputSchema": output})
    )
    assert (view.description, view.required) == ("d", ("b",))
    assert orjson.loads(view.input_schema) == schema
    assert view.output_schema == orjson.dumps(output)
    assert view.signature.startswith('{"b": string')


@pytest.mark.parametrize("entry", [{}, {"description": None, "outputSchema": None}])
def test_what_a_tool_leaves_out_is_empty(entry: dict[str, object]) -> None:
    view = tool_view(orjson.dumps({"name": "t", "inputSchema": {"type": "object"}, **entry}))
    assert (view.description, view.required, view.output_schema) == ("", (), None)


def test_a_view_is_made_once_for_the_same_bytes() -> None:
    raw = orjson.dumps({"name": "once", "inputSchema": {"type": "object"}})
    assert tool_view(raw) is tool_view(bytes(bytearray(raw)))
