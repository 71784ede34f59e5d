"""whole_answer.py: which answers are read as whole, and that what they say is what aiohttp reads of them."""

import asyncio

import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from app.connections.whole_answer import HEAD_MAX, WholeAnswer, WholeAnswers

pytestmark = pytest.mark.spec("connection")

BODY = b'{"jsonrpc":"2.0"}'
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: %d\r\n\r\n" % len(BODY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = PLAIN + BODY


def with_line(line: bytes) -> bytes:
    return WHOLE.replace(b"\r\n", b"\r\n" + line + b"\r\n", 1)


SIMPLE: dict[str, tuple[bytes, WholeAnswer]] = {
    "plain": (WHOLE, WholeAnswer("a/b", BODY)),
    "names-in-any-case": (WHOLE.replace(b"Content-T", b"cOnTENT-t"), WholeAnswer("a/b", BODY)),
    "kept-alive": (with_line(b"Connection: keep-alive"), WholeAnswer("a/b", BODY)),
    "first-of-two-types": (with_line(b"content-type: c/d"), WholeAnswer("c/d", BODY)),
    "no-type": (WHOLE.replace(b"Content-Type", b"X-Other"), WholeAnswer("", BODY)),
    "bytes-in-the-type": (WHOLE.replace(b"a/b", b"a/\xff"), WholeAnswer("a/\udcff", BODY)),
    "one-chunk": (CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", WholeAnswer("", b"abc")),
    "blanks-around-the-type": (WHOLE.replace(b" a/b", b"\ta/b \t"), WholeAnswer("a/b", BODY)),
    "first-type-is-empty": (with_line(b"content-type:"), WholeAnswer("", BODY)),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", WholeAnswer("", b"")),
}
OTHERS: dict[str, bytes] = {
    "nothing": b"",
    "cut-head": PLAIN[:-2],
    "cut-body": WHOLE[:-1],
    "more": WHOLE + b"H",
    "two": WHOLE + WHOLE,
    "early-hints": b"HTTP/1.1 103 Early Hints\r\n\r\n" + WHOLE,
    "another-status": WHOLE.replace(b"200", b"201"),
    "switched": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nab",
    "until-the-end": b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    "to-be-closed": with_line(b"Connection: close"),
    "old": WHOLE.replace(b"1.1", b"1.0"),
    "encoded": with_line(b"Content-Encoding: gzip"),
    "encoded-as-nothing": with_line(b"Content-Encoding: identity"),
    "two-lengths": with_line(b"Content-Length: 3"),
    "length-and-chunks": with_line(b"Transfer-Encoding: chunked"),
    "trailer": CHUNKED + b"1\r\na\r\n0\r\nContent-Type: c/d\r\n\r\n",
    "two-chunks": CHUNKED + b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
    "odd-lines": WHOLE.replace(b"\r\n", b"\n"),
    "odd-name": WHOLE.replace(b"Type:", b"Type :"),
    "odd-value": with_line(b"X: a\0b"),
    "folded": with_line(b"X: a\r\n b"),
    "long-head": with_line(b"X: " + b"a" * HEAD_MAX),
    "no-http": b"SSH-2.0-OpenSSH_9\r\n",
}


def test_simple_answers_are_read_one_after_the_other_whatever_came_between() -> None:
    answers = WholeAnswers()
    for data, answer in SIMPLE.values():
        for other in OTHERS.values():
            assert answers.read(data) == answer
            assert answers.read(other) is None


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_what_is_not_simple_is_left_alone(data: bytes) -> None:
    assert WholeAnswers().read(data) is None


LINES = st.sampled_from(
    [
        b"Content-Length: 5",
        b"Content-Length: 05",
        b"content-length: +5",
        b"Content-Length: 4",
        b"Date: x",
        b"X:",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Connection: close",
        b"Connection: x",
        b"Content-Type: a/b ",
        b"Content-Type:\tc/d",
        b"Content-Type:",
        b"Content-Encoding: gzip",
        b"Upgrade: h2c",
        b"Trailer: X",
        b" y",
    ]
)
ENDS = st.sampled_from(
    [b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"hello\r\n", b"", b"0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n"]
)
FIRSTS = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No", b"HTTP/1.1 0200 OK"]
)


@given(FIRSTS, st.lists(LINES, max_size=4), ENDS)
async def test_aiohttp_reads_the_same_of_what_is_read_here(
    first: bytes, lines: list[bytes], end: bytes
) -> None:
    data = b"\r\n".join([first, *lines, b"", end])
    whole = WholeAnswers().read(data)
    if whole is None:
        return
    handler = ResponseHandler(asyncio.get_running_loop())
    handler.set_response_params(read_until_eof=True)
    handler.data_received(data)
    message, content = await handler.read()
    assert message.code == 200
    assert message.headers.get("Content-Type", "") == whole.content_type
    assert (content.is_eof(), await content.read()) == (True, whole.body)
    assert not handler.should_close
