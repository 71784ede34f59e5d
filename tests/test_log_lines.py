"""log_lines.py: gathered lines keep their order, are masked, and none is lost."""

import io
import logging
import threading

import anyio
import pytest

from app.core.masking import Mask
from app.log_lines import GATHER_MAX, LogLines, LogLinesHandler

pytestmark = pytest.mark.spec("observe")


def logging_to() -> tuple[io.StringIO, LogLines]:
    file = io.StringIO()
    return file, LogLines(file, Mask(["canary-secret"]).mask)


async def test_lines_are_gathered_and_written_soon_masked_and_in_their_order() -> None:
    file, lines = logging_to()
    lines.info("one canary-secret")
    lines.debug("two")
    assert file.getvalue() == ""
    with anyio.fail_after(5):
        while not file.getvalue():
            await anyio.sleep(0.005)
    assert file.getvalue() == "one ***\ntwo\n"


async def test_a_line_does_not_show_a_secret_that_is_forgotten_while_it_waits() -> None:
    file, mask = io.StringIO(), Mask()
    lines, passing = LogLines(file, mask.mask), mask.passing()
    passing.add("passing-secret")
    lines.info("it was passing-secret")
    del passing
    mask.passing().add("another-secret")  # forgets what was abandoned
    lines.flush()
    assert file.getvalue() == "it was ***\n"


async def test_what_is_worse_than_information_is_written_at_once_behind_what_waited() -> None:
    file, lines = logging_to()
    lines.info("first")
    lines.warning("second canary-secret")
    assert file.getvalue() == "first\nsecond ***\n"


async def test_what_libraries_log_keeps_its_place() -> None:
    file, lines = logging_to()
    handler = LogLinesHandler(lines)
    lines.info("first")
    handler.emit(logging.LogRecord("library", logging.WARNING, "", 0, "second %s", ("x",), None))
    lines.info("third")
    handler.flush()
    assert file.getvalue() == "first\nsecond x\nthird\n"


async def test_no_more_than_so_many_lines_wait() -> None:
    file, lines = logging_to()
    for number in range(GATHER_MAX):
        lines.info(str(number))
    assert file.getvalue().splitlines() == [str(number) for number in range(GATHER_MAX)]


async def test_a_line_of_another_thread_is_written_at_once() -> None:
    file, lines = logging_to()
    lines.info("first")
    thread = threading.Thread(target=lines.info, args=("second",))
    thread.start()
    await anyio.to_thread.run_sync(thread.join)
    assert file.getvalue() == "first\nsecond\n"


def test_lines_that_one_event_loop_left_are_written_with_those_of_the_next() -> None:
    file, lines = logging_to()

    async def saying(line: str) -> None:
        lines.info(line)

    anyio.run(saying, "first")
    anyio.run(saying, "second")
    assert file.getvalue() == ""
    lines.flush()
    assert file.getvalue() == "first\nsecond\n"
