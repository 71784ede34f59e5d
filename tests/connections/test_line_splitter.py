"""Framing by LF alone. SPEC §connection."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.connections.line_splitter import EDGE, LineSplitter, Oversized

pytestmark = pytest.mark.spec("connection")


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


def fed(splitter: LineSplitter, chunks: list[bytes]) -> list[bytes | Oversized]:
    return [line for chunk in chunks for line in splitter.feed(chunk)]


@given(st.lists(st.binary(max_size=30)), st.binary(max_size=30), st.lists(st.integers(0, 40)))
def test_any_chunking_gives_the_same_lines(lines: list[bytes], rest: bytes, sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines) + rest
    splitter = LineSplitter(100)
    *complete, unfinished = stream.split(b"\n")
    expected = [line for line in complete if line and not line.isspace()]
    assert fed(splitter, cut(stream, sizes)) == expected
    assert splitter.rest() == unfinished


@given(st.lists(st.integers(1, 700)), st.lists(st.integers(0, 900)))
def test_a_line_over_the_limit_keeps_its_edges_and_harms_no_other(
    lengths: list[int], sizes: list[int]
) -> None:
    lines = [bytes(97 + index % 26 for index in range(length)) for length in lengths]
    splitter = LineSplitter(600)
    found = fed(splitter, cut(b"".join(line + b"\n" for line in lines), sizes))
    assert found == [
        line if len(line) <= 600 else Oversized(line[:EDGE] + line[-EDGE:], len(line)) for line in lines
    ]


@pytest.mark.parametrize("separator", [b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x85", "\u2028".encode()])
def test_only_lf_ends_a_line(separator: bytes) -> None:
    assert fed(LineSplitter(100), [b"a" + separator + b"b\n"]) == [b"a" + separator + b"b"]


def test_blank_lines_are_left_out() -> None:
    assert fed(LineSplitter(100), [b"\n \r\n\r", b"\n\t\n1\n"]) == [b"1"]


def test_a_line_of_exactly_the_limit_is_taken() -> None:
    assert fed(LineSplitter(4), [b"12", b"34\n12345\n"]) == [b"1234", Oversized(b"1234512345", 5)]


def test_bytes_that_come_one_by_one_cost_no_more_than_linear_time_and_memory() -> None:
    splitter = LineSplitter(1 << 20)
    start = time.monotonic()
    assert not any(list(splitter.feed(b"x")) for _ in range(1 << 19))
    assert [len(line) for line in splitter.feed(b"\n") if isinstance(line, bytes)] == [1 << 19]
    assert time.monotonic() - start < 20


def test_an_endless_line_is_not_kept() -> None:
    splitter = LineSplitter(1000)
    for _ in range(100):
        assert list(splitter.feed(b"y" * 10_000)) == []
    assert splitter.rest() == b""
    assert list(splitter.feed(b"ok\n")) == [b"ok"]
