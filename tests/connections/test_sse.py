"""sse.py: the event-stream grammar, in every chunking."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.connections.sse import EventStream
from app.core.answers import AnswerTooLarge


def read(data: bytes, cuts: list[int] | None = None, *, limit: int = 1000) -> list[bytes]:
    stream = EventStream(limit=limit)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    return [event for start, end in pairwise(edges) for event in stream.feed(data[start:end])]


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "data, events",
    [
        (b"data: a\n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\r", [b"a"]),
        (b"data: a\r\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: \xef\xbb\xbfa\n\n", [b"\xef\xbb\xbfa"]),
        (b": comment\n\ndata: a\n\n: end\n", [b"a"]),
        (b"event: message\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"data: a\ndata:b\ndata:  c\n\n", [b"a\nb\n c"]),
        (b"data: a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n", [b"a\nb", b"c", b"d"]),
        (b"data\n\n", [b""]),
        (b"data:\ndata\n\n", [b"\n"]),
        (b"datas: a\ndat: b\n data: c\n\n", []),
        (b"event: message\n\n", []),
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\n", []),
        (b"data: a", []),
        (b"\n\n\n", []),
        ("data: Žluť 月 🦄\u2028\x85\x0b\n\n".encode(), ["Žluť 月 🦄\u2028\x85\x0b".encode()]),
    ],
)
def test_the_grammar(data: bytes, events: list[bytes]) -> None:
    assert read(data) == events
    assert read(data, list(range(len(data)))) == events


PIECES = st.sampled_from(["data: a", "data:", "data", "id: 1", ": c", "\n", "\r", "\r\n", "Ž", "\ufeff"])


@given(st.lists(PIECES, max_size=30).map("".join), st.lists(st.integers(0, 400), max_size=20))
def test_every_chunking_gives_the_same_events(text: str, cuts: list[int]) -> None:
    assert read(text.encode(), cuts) == read(text.encode())


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_no_bytes_make_the_reader_raise_anything_but_its_limit(data: bytes, cuts: list[int]) -> None:
    with suppress(AnswerTooLarge):
        assert all(len(event) <= 20 for event in read(data, cuts, limit=20))


@pytest.mark.spec("limits")
@pytest.mark.parametrize("cuts", [[], list(range(60))])
@pytest.mark.parametrize(
    "data",
    [b"data: " + b"x" * 21 + b"\n\n", b"data: " + b"x" * 40, b"x" * 60, b"data: 0123456789\n" * 3],
)
def test_an_event_over_the_limit_is_refused_before_it_is_complete(data: bytes, cuts: list[int]) -> None:
    with pytest.raises(AnswerTooLarge):
        read(data, cuts, limit=20)


def test_an_event_of_exactly_the_limit_passes_and_comments_never_add_up() -> None:
    data = b": keep-alive\n" * 100 + b"data: " + b"x" * 20 + b"\n\n"
    assert read(data, limit=20) == [b"x" * 20]
    assert read(data, list(range(len(data))), limit=20) == [b"x" * 20]
