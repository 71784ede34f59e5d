"""What may be shown of a child's output. SPEC §connection, §references."""

import tracemalloc

import pytest

from app.connections.child_output import (
    HEAD_SHOWN,
    HEADS_KEPT,
    STDERR_KEPT,
    STDERR_SHOWN,
    DroppedLines,
    StderrTail,
)
from app.core.masking import Mask

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("references")]

SECRET = "s3cret-canary-value"


def shown(*chunks: bytes) -> str | None:
    tail = StderrTail()
    for chunk in chunks:
        tail.add(chunk)
    return tail.text(Mask([SECRET]).mask)


def test_nothing_written_is_nothing_shown() -> None:
    assert shown() is None
    assert shown(b"\n \r\n") is None


def test_the_end_of_stderr_is_shown() -> None:
    assert STDERR_KEPT == 64 * 1024
    assert shown(b"x" * 100_000 + b"\n", b"the cause\n") == "x" * (STDERR_SHOWN - 10) + "\nthe cause"


@pytest.mark.parametrize(
    "raw",
    [
        SECRET,
        f"{SECRET[:5]}\x1b[31m{SECRET[5:]}",
        "x" * 3000 + SECRET + "y" * (STDERR_SHOWN - 5),
        "x" * 20_000 + SECRET + "\x1b[0m" * 4094,
        "x" * (64 * 1024 - 8) + SECRET + "\x1b[0m" * 16_382,
    ],
    ids=["plain", "split by an escape", "across the cut", "across the window", "beheaded by the ring"],
)
def test_a_secret_is_masked_wherever_it_stands(raw: str) -> None:
    text = shown(raw.encode()) or ""
    assert not any(SECRET[i : i + 6] in text for i in range(len(SECRET) - 6))


def test_control_characters_do_not_reach_a_terminal() -> None:
    raw = b"\x1b]0;title\x07a\x00b\x08\x7f\xff\xe2\x80\xae\x1b[2Jc\r10%\r20%\r\nend\x1b"
    assert shown(raw) == "a\ufffdb\ufffd\ufffd\ufffd\ufffdc\n10%\n20%\nend\ufffd"


def test_memory_is_bounded_whatever_the_line_length() -> None:
    tail = StderrTail()
    tracemalloc.start()
    for _ in range(4096):
        tail.add(b"#\r" * 2048)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_dropped_lines_show_masked_heads_of_the_last_few() -> None:
    dropped = DroppedLines()
    for index in range(20):
        dropped.add(b"banner %d " % index + SECRET.encode() + b"z" * 100_000)
    heads = dropped.shown(Mask([SECRET]).mask)
    assert [head.split(" z")[0][:13] for head in heads] == [f"banner {index} ***" for index in range(15, 20)]
    assert len(heads) == HEADS_KEPT
    assert all(len(head) == HEAD_SHOWN for head in heads)
