"""Results of reads, prompts and completions: what the caller gets, and which ones cannot be used."""

from collections.abc import Callable
from typing import Any

import pytest

from app.core.operation_problems import ToolResultInvalid
from app.core.read_results import completion_result, prompt_result, resource_result

TEXT = {"uri": "a:b", "text": "x", "mimeType": "text/plain"}
BLOB = {"uri": "a:b", "blob": "AA=="}
MESSAGE = {"role": "user", "content": {"type": "text", "text": "hi"}}
VALUES = [str(each) for each in range(100)]


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    ("read", "value", "shown"),
    [
        (resource_result, {"contents": [TEXT, BLOB], "ttlMs": 5}, {"contents": [TEXT, BLOB]}),
        (resource_result, {"contents": []}, {"contents": []}),
        (prompt_result, {"messages": [MESSAGE]}, {"messages": [MESSAGE]}),
        (prompt_result, {"description": None, "messages": []}, {"messages": []}),
        (prompt_result, {"description": "d", "messages": []}, {"description": "d", "messages": []}),
        (completion_result, {"completion": {"values": VALUES}}, {"completion": {"values": VALUES}}),
        (
            completion_result,
            {"completion": {"values": [], "total": 10.0, "hasMore": True, "other": 1}},
            {"completion": {"values": [], "total": 10, "hasMore": True}},
        ),
        (
            completion_result,
            {"completion": {"values": ["a"], "total": None, "hasMore": None}},
            {"completion": {"values": ["a"]}},
        ),
    ],
)
def test_a_good_result_is_shown(read: Callable[..., Any], value: Any, shown: Any) -> None:
    assert read(value, server="p") == shown


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    ("read", "value"),
    [
        (resource_result, {}),
        (resource_result, {"contents": TEXT}),
        (resource_result, {"contents": [{"uri": "a:b"}]}),
        (resource_result, {"contents": [{"text": "x"}]}),
        (prompt_result, {}),
        (prompt_result, {"messages": None}),
        (prompt_result, {"messages": ["x"]}),
        (prompt_result, {"messages": [{"role": "system", "content": MESSAGE["content"]}]}),
        (prompt_result, {"messages": [{"role": "user", "content": {"type": "text"}}]}),
        (prompt_result, {"messages": [], "description": 1}),
        (completion_result, {}),
        (completion_result, {"completion": []}),
        (completion_result, {"completion": {}}),
        (completion_result, {"completion": {"values": [1]}}),
        (completion_result, {"completion": {"values": [*VALUES, "101"]}}),
        (completion_result, {"completion": {"values": [], "total": "many"}}),
        (completion_result, {"completion": {"values": [], "total": True}}),
        (completion_result, {"completion": {"values": [], "hasMore": 1}}),
    ],
)
def test_a_malformed_result_is_executed_and_invalid(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(ToolResultInvalid) as raised:
        read(value, server="p")
    assert raised.value.facts == {"server": "p"}
