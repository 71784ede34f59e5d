"""Bodies that expand: every encoding, on every kind of answer, is bounded while it is decoded. SPEC §limits.

The peer is hand-written bytes: no good server produces them.
"""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from app.core.answers import AnswerLost, AnswerMalformed, AnswerTooLarge, HttpRefusal
from tests.support.http_way import OK, answer_to, value
from tests.support.scripted_http import Reply, response_event

pytestmark = pytest.mark.spec("limits", "connection")

MIB = 2**20
ZEROS = 64 * MIB
PEAK = 4 * MIB
"""What may be held at once of an answer; the limit of a message is far below in these tests."""
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": OK}).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 9)


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": packed,
    "GZIP": packed,
    "deflate": lambda data: zlib.compress(data, 9),
    "deflate (raw)": raw_deflate,
}
"""Those that are accepted, with and without the wrapper that some leave out."""
UNASKED = ["br", "zstd", "compress", "x-gzip", "gzip, gzip", "gzip,deflate", "identity, gzip", "nonsense"]
"""Those that nobody asked for, several one in the other among them."""


@contextmanager
def bounded() -> Generator[None]:
    """Fail where more is held at once inside the block than an answer may."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < PEAK
    finally:
        tracemalloc.stop()


def reply(encoding: str, body: bytes, kind: str = "application/json", status: int = 200) -> Reply:
    headers = {"Content-Type": kind, "Content-Encoding": encoding.partition(" (")[0]}
    return Reply(status, headers, body, then="close")


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    zeros = b" " * ZEROS
    return {encoding: encode(zeros) for encoding, encode in ENCODINGS.items()}


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_body_that_expands_beyond_the_limit_is_refused(
    bombs: dict[str, bytes], encoding: str, kind: str
) -> None:
    with bounded(), pytest.raises(AnswerTooLarge):
        await answer_to(reply(encoding, bombs[encoding], kind))


@pytest.mark.parametrize("status", [400, 404, 500, 401, 403, 302])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_refusal_that_expands_is_its_status(
    bombs: dict[str, bytes], encoding: str, status: int
) -> None:
    with bounded():
        assert await answer_to(reply(encoding, bombs[encoding], status=status)) == HttpRefusal(status)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("encoding", UNASKED)
async def test_an_encoding_that_nobody_asked_for_is_no_answer(
    bombs: dict[str, bytes], encoding: str, kind: str
) -> None:
    twice = packed(bombs["gzip"])
    with bounded(), pytest.raises((AnswerLost, AnswerMalformed)):
        await answer_to(reply(encoding, twice, kind))


async def test_what_expands_inside_what_expands_is_decoded_once(bombs: dict[str, bytes]) -> None:
    with bounded(), pytest.raises(AnswerMalformed):
        await answer_to(reply("gzip", packed(bombs["gzip"])))


async def test_what_expands_behind_the_answer_of_a_stream_is_not_waited_for(bombs: dict[str, bytes]) -> None:
    body = packed(response_event().replace("$id", "1").encode() + b" " * ZEROS)
    with bounded():
        assert value(await answer_to(reply("gzip", body, "text/event-stream"))) == OK


async def test_what_stands_behind_the_end_of_an_encoded_body_is_no_part_of_it(
    bombs: dict[str, bytes],
) -> None:
    with bounded(), pytest.raises((AnswerLost, AnswerMalformed, AnswerTooLarge)):
        await answer_to(reply("gzip", packed(ANSWER) + bombs["gzip"]))
