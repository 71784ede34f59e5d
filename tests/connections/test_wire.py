"""wire.py: what we send passes the specification's schema, what strangers send has one meaning."""

import gc
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.connections.wire import (
    BIG_MESSAGE,
    BRACKETS_MAX,
    DEPTH_MAX,
    Malformed,
    Notification,
    PeerRequest,
    Response,
    answer_after_noise,
    decode,
    encode_cancelled,
    encode_request,
    stamp,
)
from app.core.answers import RemoteError, RequestNotSent, Result
from app.core.json_value import Json
from tests.support.mcp_schema import faults

NULL: Json = None


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def result(value: object, **members: object) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": 7, "result": value, **members})


@pytest.mark.spec("revision")
def test_a_request_carries_what_every_request_carries_and_is_one_line() -> None:
    data = encode_request(
        3, "tools/call", {"name": "a\nb", "arguments": {"x": None}}, stamp=stamp({}), progress_token=3
    )
    message = json.loads(data)
    version = message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"].pop("version")
    assert b"\n" not in data
    assert isinstance(version, str)
    assert message == {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {
            "name": "a\nb",
            "arguments": {"x": None},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "plurnk-mcpd"},
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": 3,
            },
        },
    }


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "definition, method, params",
    [
        ("DiscoverRequest", "server/discover", {}),
        ("ListToolsRequest", "tools/list", {"cursor": ""}),
        ("ListPromptsRequest", "prompts/list", {}),
        ("ListResourcesRequest", "resources/list", {}),
        ("ListResourceTemplatesRequest", "resources/templates/list", {}),
        ("CallToolRequest", "tools/call", {"name": "t", "arguments": {}}),
        ("ReadResourceRequest", "resources/read", {"uri": "a://b"}),
        ("GetPromptRequest", "prompts/get", {"name": "p", "arguments": {"a": "b"}}),
    ],
)
def test_every_request_is_valid_by_the_specifications_schema(
    definition: str, method: str, params: dict[str, Any]
) -> None:
    data = encode_request(1, method, params, stamp=stamp({}), progress_token=1)
    assert faults(definition, json.loads(data)) == []


@pytest.mark.spec("connection")
def test_a_cancellation_is_valid_by_the_specifications_schema() -> None:
    message = json.loads(encode_cancelled(4, "the caller left"))
    assert message["params"] == {"requestId": 4, "reason": "the caller left"}
    assert faults("CancelledNotification", message) == []


@pytest.mark.spec("observe")
def test_the_trace_context_goes_into_meta() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}
    message = json.loads(encode_request(1, "server/discover", {}, stamp=stamp({}), trace=trace))
    assert message["params"]["_meta"]["traceparent"] == trace["traceparent"]


@pytest.mark.spec("calls")
@pytest.mark.parametrize("value", [2**70, -(2**64), "a\ud800b", {"n": [[[[[[]]]]]]}])
def test_arguments_are_written_unchanged_also_where_the_fast_writer_cannot(value: Json) -> None:
    data = encode_request(1, "tools/call", {"name": "t", "arguments": {"v": value}}, stamp=stamp({}))
    assert json.loads(data)["params"]["arguments"] == {"v": value}


def test_arguments_nested_beyond_all_reason_are_refused_before_anything_is_sent() -> None:
    value: Json = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(RequestNotSent):
        encode_request(1, "tools/call", {"arguments": value}, stamp=stamp({}))


@pytest.mark.parametrize(
    "data, message",
    [
        (result({"a": 1}), Response(7, Result({"a": 1}, len(result({"a": 1}))))),
        (b"\xef\xbb\xbf" + result({}), Response(7, Result({}, len(result({})) + 3))),
        (result({}, error=None), Response(7, Result({}, len(result({}, error=None))))),
        (
            encoded({"jsonrpc": "2.0", "id": 7, "result": None, "error": {"code": -32000, "message": "m"}}),
            Response(7, RemoteError(-32000, "m")),
        ),
        (
            encoded({"jsonrpc": "2.0", "id": "7", "error": {"code": 1.0, "message": None, "data": [1]}}),
            Response("7", RemoteError(1, "", [1])),
        ),
        (
            encoded({"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}}),
            Response(None, RemoteError(-32700, "m")),
        ),
        (encoded({"jsonrpc": "2.0", "method": "m"}), Notification("m", {})),
        (b'{"jsonrpc":"2.0","result":{}}', Response(None, Result({}, 29))),
        (encoded({"jsonrpc": "2.0", "id": None, "method": "m", "params": None}), Notification("m", {})),
        (encoded({"jsonrpc": "2.0", "method": "m", "params": {"a": 1}}), Notification("m", {"a": 1})),
        (encoded({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}), PeerRequest(0, "roots/list")),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}', Response(7, Result({"a": 2}, 47))),
    ],
)
def test_what_a_message_means(data: bytes, message: object) -> None:
    assert decode(data) == message


@pytest.mark.parametrize(
    "data, identifier",
    [
        (b"", None),
        (b"not json", None),
        (b"[]", None),
        (b'[{"jsonrpc":"2.0","id":7,"result":{}}]', None),
        (b'{"id":7,"result":{}}', None),
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":7.0,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":[]}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"error":"invalid_token"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"error":{"code":true,"message":"m"}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","result":{}}', 7),
        (b'{"jsonrpc":"2.0","method":"m","params":[]}', None),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":NaN}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"9" * 400 + b"}}", 7),
        (b'{"id":7,"jsonrpc":"2.0","result":{"n":1e400}}', 7),
        (b'{"jsonrpc":"2.0","result":{"n":NaN},"id":7}', 7),
        (b'{"result":{"n":NaN},"id":7,"jsonrpc":"2.0"}\n', 7),
        (b'{"jsonrpc":"2.0","result":{"n":NaN,"id":7}}', None),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}", 7),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", 7),
    ],
)
def test_what_is_no_message_is_malformed_and_says_whose_answer_it_was_where_it_can(
    data: bytes, identifier: int | None
) -> None:
    message = decode(data)
    assert isinstance(message, Malformed)
    assert message.id == identifier


@pytest.mark.parametrize(
    "data, seems",
    [
        (b'{"id":7,"error":"unknown method"}', 7),
        (b'{"jsonrpc":"1.0","id":"7","result":{}}', 7),
        (b'[{"jsonrpc":"2.0","id":7,"result":{}}]', 7),
        (b'[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"result":{}}]', None),
        (b"[7]", None),
        (b'{"jsonrpc":"2.0","id":7.0,"result":{}}', 7),
        (b'{"jsonrpc":"2.0","id":7.5,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":[7],"result":{}}', None),
        (b'{"id":"seven","result":{}}', None),
        (b'{"id":7,"level":30}', None),
        (b'{"id":7,"method":"m","result":{}}', None),
        (b'{"error":"unknown method"}', None),
    ],
)
def test_an_answer_of_another_form_says_whose_it_seems_to_be(data: bytes, seems: int | None) -> None:
    message = decode(data)
    assert isinstance(message, Malformed)
    assert (message.id, message.seems) == (None, seems)


@pytest.mark.parametrize(
    "line, noise",
    [
        (b'ready. {"jsonrpc":"2.0","id":7,"result":{}}', b"ready. "),
        (b'\x1b[?25h{"id":7,"jsonrpc":"2.0","result":{}}', b"\x1b[?25h"),
        (b'{1} { "result" : {},"id":7,"jsonrpc":"2.0"}', b"{1} "),
        (b'got {"jsonrpc":"2.0","id":7,"method":"m"}', None),
        (b'cut {"jsonrpc":"2.0","id":7,"result":{', None),
        (b'{"jsonrpc":"2.0","id":7,"result":{}} done', None),
        (b"ready", None),
        (b"", None),
    ],
)
def test_an_answer_may_stand_behind_noise_in_its_line(line: bytes, noise: bytes | None) -> None:
    found = answer_after_noise(line)
    assert (None if found is None else (found[0], found[1].id)) == (None if noise is None else (noise, 7))


@pytest.mark.parametrize(
    "text, meant",
    [
        (r"a\ud83d b \udc00", "a� b �"),
        (r"\ud83e\udd84", "🦄"),
        (r"\udd84\ud83e", "��"),
        (r"\ud83e\ud83e\udd84", "�🦄"),
        (r"\\ud83e", r"\ud83e"),
        (r"\\\ud83e\\", "\\�\\"),
    ],
)
def test_unpaired_surrogates_become_replacement_characters_and_nothing_else_changes(
    text: str, meant: str
) -> None:
    # The lone one outside makes the fast reader refuse the message.
    data = rf'{{"jsonrpc":"2.0","id":7,"result":{{"t":"{text}","lone":"\udfff"}}}}'.encode()
    assert decode(data) == Response(7, Result({"t": meant, "lone": "�"}, len(data)))


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    data = b'{"jsonrpc":"2.0","id":7,"result":{"t":"a\xffb"}}'
    assert decode(data) == Response(7, Result({"t": "a�b"}, len(data)))


def test_integers_beyond_64_bits_become_doubles_and_smaller_ones_stay_exact() -> None:
    data = b'{"jsonrpc":"2.0","id":7,"result":{"n":9007199254740993,"m":18446744073709551616}}'
    assert decode(data) == Response(7, Result({"n": 9007199254740993, "m": 1.8446744073709552e19}, len(data)))


@pytest.mark.spec("limits")
def test_the_deepest_message_that_is_taken_can_be_written_again_inside_our_envelopes() -> None:
    depth = DEPTH_MAX - 1
    value: Json = 1
    for _ in range(depth - 1):
        value = [value]
    message = decode(result({"v": value}))
    assert isinstance(message, Response)
    assert isinstance(message.answer, Result)
    assert orjson.dumps({"a": {"b": {"c": [message.answer.value]}}})
    assert isinstance(decode(result({"v": [[value]]})), Malformed)


@pytest.mark.spec("limits")
@pytest.mark.parametrize("text", ["", "x" * BIG_MESSAGE, "[" * BIG_MESSAGE], ids=["small", "big", "dense"])
@pytest.mark.parametrize(("more", "expected"), [(0, Response), (1, Malformed)])
def test_levels_are_counted_in_small_and_big_messages_alike(text: str, more: int, expected: type) -> None:
    levels = DEPTH_MAX - 2 + more
    value = b"[" * levels + b"]" * levels
    data = b'{"jsonrpc":"2.0","id":7,"result":{"text":"%b","v":%b}}' % (text.encode(), value)
    assert isinstance(decode(data), expected)


@pytest.mark.spec("limits")
@pytest.mark.parametrize("one", [b"[]", b"{}", b"[[]]", b'{"a":[]}'])
def test_a_message_of_very_many_arrays_and_objects_is_refused_before_it_is_built(one: bytes) -> None:
    count = BRACKETS_MAX // (one.count(b"[") + one.count(b"{"))
    head, tail = b'{"jsonrpc":"2.0","id":7,"result":{"v":[', b"0]}}"
    taken = decode(head + (one + b",") * (count - 3) + tail)
    assert isinstance(taken, Response)
    refused = decode(head + (one + b",") * count + tail)
    assert isinstance(refused, Malformed)
    assert refused.id == 7


@pytest.mark.parametrize("ending", [b"1]}}", b"1"])
def test_the_collector_rests_while_a_big_value_grows_and_works_again_afterwards(ending: bytes) -> None:
    runs: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        runs.append(phase)

    gc.callbacks.append(note)
    try:
        decode(b'{"jsonrpc":"2.0","id":7,"result":{"t":[' + b"[]," * BIG_MESSAGE + ending)
        during = list(runs)
    finally:
        gc.callbacks.remove(note)
    assert during == []
    assert gc.isenabled()


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    assert isinstance(decode(data), Response | Notification | PeerRequest | Malformed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0", None, 2]),
            "id": JSON,
            "method": JSON,
            "params": JSON,
            "result": JSON,
            "error": JSON | st.fixed_dictionaries({"code": JSON, "message": JSON}),
        },
    )
)
def test_no_json_makes_the_reader_raise_and_what_it_takes_can_be_written(value: dict[str, Any]) -> None:
    message = decode(json.dumps(value).encode())
    match message:
        case Response(answer=Result(value=taken)):
            orjson.dumps(taken)
        case Response(answer=RemoteError() as error):
            orjson.dumps([error.code, error.message, error.data])
        case Notification(method=method, params=params):
            orjson.dumps([method, params])
        case _:
            assert isinstance(message, PeerRequest | Malformed)
