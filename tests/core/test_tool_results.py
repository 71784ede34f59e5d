"""Results of tools: what the caller gets of them, and which ones cannot be used."""

from typing import Any

import orjson
import pytest

from app.core.operation_problems import ToolResultInvalid
from app.core.problem import Outcome
from app.core.tool_results import tool_result

TEXT = {"type": "text", "text": "E-17"}
ROWS = orjson.dumps({"type": "object", "required": ["rows"], "properties": {"rows": {"type": "integer"}}})


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    ("value", "schema", "shown"),
    [
        ({"content": []}, None, {"isError": False, "content": []}),
        ({"content": [TEXT], "_meta": {"a": 1}}, None, {"isError": False, "content": [TEXT]}),
        (
            {"content": [TEXT], "isError": True, "structuredContent": {"err": 1}},
            ROWS,
            {"isError": True, "content": [TEXT], "structuredContent": {"err": 1}},
        ),
        ({"content": [TEXT], "isError": True}, ROWS, {"isError": True, "content": [TEXT]}),
        (
            {"structuredContent": {"rows": 1}},
            ROWS,
            {"isError": False, "content": [], "structuredContent": {"rows": 1}},
        ),
        (
            {"content": [], "structuredContent": None},
            b"{}",
            {"isError": False, "content": [], "structuredContent": None},
        ),
        (
            {"content": [], "structuredContent": [1]},
            None,
            {"isError": False, "content": [], "structuredContent": [1]},
        ),
        (
            {"content": [{"type": "hologram", "x": None}]},
            None,
            {"isError": False, "content": [{"type": "hologram", "x": None}]},
        ),
    ],
    ids=[
        "empty",
        "only its own members",
        "an error is not held against the schema",
        "an error without structure",
        "content absent beside structure",
        "null is a value",
        "structure without a schema",
        "an unknown block passes",
    ],
)
def test_a_good_result_is_passed_on_as_it_came(value: Any, schema: bytes | None, shown: Any) -> None:
    assert tool_result(value, server="p", output_schema=schema) == shown


BAD_BLOCKS = [
    None,
    "text",
    {},
    {"type": None},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "image", "data": "AA=="},
    {"type": "audio", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "x:y"},
    {"type": "resource"},
    {"type": "resource", "resource": {"text": "no uri"}},
    {"type": "resource", "resource": {"uri": "x:y"}},
    {"type": "resource", "resource": {"uri": "x:y", "blob": 1}},
]


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "value",
    [
        {},
        {"content": None},
        {"content": {"type": "text"}},
        {"content": [], "isError": None},
        {"content": [], "isError": "no"},
        {"isError": True},
        *({"content": [TEXT, block]} for block in BAD_BLOCKS),
    ],
)
def test_a_malformed_result_is_executed_and_invalid(value: Any) -> None:
    with pytest.raises(ToolResultInvalid) as raised:
        tool_result(value, server="p", output_schema=None)
    assert raised.value.outcome is Outcome.EXECUTED
    assert raised.value.facts == {"server": "p"}


@pytest.mark.spec("calls")
def test_structured_content_is_held_against_the_output_schema() -> None:
    with pytest.raises(ToolResultInvalid) as raised:
        tool_result({"content": [], "structuredContent": {"rows": "1"}}, server="p", output_schema=ROWS)
    errors: Any = raised.value.facts["errors"]
    assert [error["pointer"] for error in errors] == ["/rows"]


@pytest.mark.spec("calls")
def test_a_tool_with_an_output_schema_must_answer_structured() -> None:
    with pytest.raises(ToolResultInvalid, match="no structuredContent"):
        tool_result({"content": []}, server="p", output_schema=ROWS)
