"""Reading one JSON body. The messages are hand-written: a good server sends none of the odd ones."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.door_problems import BodyTooLarge, InputMalformed, MediaTypeUnsupported
from app.doors import body
from app.doors.asgi import Message, Scope
from app.doors.body import BodyLate, ClientGone, has_body, parse_json, read_json

LIMIT = 64
JSON_TYPE = (b"content-type", b"application/json")


def scope(*headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "headers": list(headers)}


class Client:
    """Sends these messages, then nothing more."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.taken = 0

    async def receive(self) -> Message:
        if not self._messages:
            await anyio.sleep_forever()
        self.taken += 1
        return self._messages.pop(0)


def chunks(*bodies: bytes) -> list[Message]:
    return [
        {"type": "http.request", "body": chunk, "more_body": index < len(bodies) - 1}
        for index, chunk in enumerate(bodies)
    ]


async def read(messages: Sequence[Message], *headers: tuple[bytes, bytes]) -> Any:
    return await read_json(scope(*(headers or (JSON_TYPE,))), Client(*messages).receive, limit=LIMIT)


@pytest.mark.parametrize("cut", [(b'{"a":1}',), (b"{", b'"a"', b":1}"), (b"", b'{"a":1}', b"")], ids=len)
async def test_a_body_is_read_whatever_chunks_it_comes_in(cut: tuple[bytes, ...]) -> None:
    assert await read(chunks(*cut)) == {"a": 1}


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "declared",
    [
        (),
        (b"text/plain",),
        (b"application/x-www-form-urlencoded",),
        (b"application/jsonp",),
        (b"application/json, text/plain",),
        (b"application/problem+json",),
        (b"application/json", b"application/json"),
        (b"",),
    ],
)
async def test_a_body_must_be_declared_as_json(declared: tuple[bytes, ...]) -> None:
    headers = [(b"content-type", each) for each in declared] or [(b"accept", b"*/*")]
    with pytest.raises(MediaTypeUnsupported):
        await read(chunks(b"{}"), *headers)


@pytest.mark.parametrize(
    "declared", [b"application/json", b"Application/JSON; charset=utf-8", b"application/json ;a=b"]
)
async def test_json_is_json_with_any_parameters(declared: bytes) -> None:
    assert await read(chunks(b"{}"), (b"content-type", declared)) == {}


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    "bodies",
    [(b" " * 65,), (b" " * 40, b" " * 25), (b"[" + b" " * 62 + b"]", b" ")],
    ids=["whole", "chunks", "last"],
)
async def test_a_body_is_counted_while_it_arrives(bodies: tuple[bytes, ...]) -> None:
    with pytest.raises(BodyTooLarge) as raised:
        await read(chunks(*bodies))
    assert raised.value.facts == {"limit": LIMIT, "setting": "PLURNK_MAX_BODY"}


@pytest.mark.spec("limits")
async def test_a_body_of_exactly_the_limit_is_read() -> None:
    assert await read(chunks(b"[" + b" " * 62 + b"]")) == []


@pytest.mark.spec("limits")
async def test_a_body_beyond_the_limit_is_dropped_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "DISCARDED_MAX", 100)
    client = Client(*chunks(*([b"x" * 50] * 10)))
    with pytest.raises(BodyTooLarge):
        await read_json(scope(JSON_TYPE), client.receive, limit=LIMIT)
    assert client.taken == 4


@pytest.mark.spec("limits")
async def test_a_client_that_asks_before_it_sends_is_told_at_once_that_it_is_too_much() -> None:
    client = Client()
    headers = (JSON_TYPE, (b"expect", b"100-continue"), (b"content-length", b"65"))
    with pytest.raises(BodyTooLarge):
        await read_json(scope(*headers), client.receive, limit=LIMIT)
    assert client.taken == 0


async def test_a_body_that_does_not_come_in_time_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "BODY_TIMEOUT_S", 0.01)
    with pytest.raises(BodyLate):
        await read([{"type": "http.request", "body": b"{", "more_body": True}])


async def test_a_client_that_leaves_in_the_middle_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"NaN",
        b'{"a":Infinity}',
        b"\xff",
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
        b"{}{}",
        b"1e999",
        b"[" * 100_000,
        b"[" * 300 + b"]" * 300,
        b'{"a":' * 240 + b"1" + b"}" * 240,
        b'{"n":18446744073709551616}',
        b'{"n":-9223372036854775809}',
        b"9" * 400,
    ],
)
def test_what_cannot_be_kept_to_the_letter_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(InputMalformed) as raised:
        parse_json(text)
    assert len(raised.value.detail) < 200


@pytest.mark.parametrize(
    "text, value",
    [
        (b'{"n":18446744073709551615}', {"n": 2**64 - 1}),
        (b'{"n":-9223372036854775808}', {"n": -(2**63)}),
        (b'"12345678901234567890123"', "12345678901234567890123"),
        (b"0.1234567890123456789012", 0.1234567890123456789012),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b"null", None),
    ],
)
def test_what_can_be_kept_is_read(text: bytes, value: Any) -> None:
    assert parse_json(text) == value


def test_what_is_read_can_be_written_with_our_levels_around_it() -> None:
    value = parse_json(b"[" * 200 + b"]" * 200)
    orjson.dumps({"a": {"b": {"c": [value]}}})


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_JSON)
def test_every_json_value_is_read_as_it_was_written(value: Any) -> None:
    written = json.dumps(value).encode("utf-8", "surrogatepass")
    assert parse_json(written) == value


@pytest.mark.parametrize(
    "headers, expected",
    [
        ((), False),
        (((b"content-length", b"0"),), False),
        (((b"content-length", b"2"),), True),
        (((b"content-length", b"many"),), False),
        (((b"transfer-encoding", b"chunked"),), True),
    ],
)
def test_a_request_says_whether_it_has_a_body(
    headers: tuple[tuple[bytes, bytes], ...], expected: bool
) -> None:
    assert has_body(scope(*headers)) is expected
