"""header_mismatch.py: when a call goes once more because its tool mirrors other headers than it did."""

import orjson
import pytest

from app.core.answers import Answer, AnswerLost, RemoteError, Result
from app.core.json_value import JsonObject
from tests.support.connection_house import MISMATCH, House, Script, house, listed, schema

CALL: JsonObject = {"name": "t", "arguments": {"area": "north"}}


def sent(home: House) -> list[str]:
    return [request[0] for request in home.ways[0].requests[2:]]


async def mismatched_call(home: House, header: str | None) -> Answer:
    await home.connection.prepare()
    input_schema = None if header is None else as_bytes(schema(header))
    return await home.connection.request("tools/call", CALL, input_schema=input_schema)


def as_bytes(value: JsonObject) -> bytes:
    return orjson.dumps(value)


@pytest.mark.spec("connection")
async def test_after_a_header_mismatch_the_call_is_sent_once_more_where_the_annotations_changed() -> None:
    script: Script = {
        "tools/call": [MISMATCH, Result({"again": True}, 1)],
        "tools/list": [listed("Old"), listed("New")],
    }
    async with house(script) as home:
        assert await mismatched_call(home, "Old") == Result({"again": True}, 1)
        assert sent(home) == ["tools/call", "tools/list", "tools/call"]
        assert home.ways[0].requests[-1] == ("tools/call", CALL, as_bytes(schema("New")))


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "again, header",
    [
        (listed("Old"), "Old"),
        (listed("New", name="other"), "Old"),
        (listed("bad header"), "Old"),
        (RemoteError(-32603, "no"), "Old"),
        (AnswerLost("cut"), "Old"),
    ],
)
async def test_otherwise_the_mismatch_stands(again: object, header: str) -> None:
    script: Script = {"tools/call": [MISMATCH], "tools/list": [listed("Old"), again]}
    async with house(script) as home:
        assert await mismatched_call(home, header) == MISMATCH
        assert sent(home) == ["tools/call", "tools/list"]


@pytest.mark.spec("connection")
async def test_a_second_mismatch_stands_and_other_errors_are_not_looked_into() -> None:
    script: Script = {"tools/call": [MISMATCH, MISMATCH], "tools/list": [listed("Old"), listed("New")]}
    async with house(script) as home:
        assert await mismatched_call(home, "Old") == MISMATCH
        assert sent(home) == ["tools/call", "tools/list", "tools/call"]
    for answer, header in ((RemoteError(-32602, "no"), "Old"), (MISMATCH, None)):
        async with house({"tools/call": answer}) as home:
            assert await mismatched_call(home, header) == answer
            assert sent(home) == ["tools/call"]
