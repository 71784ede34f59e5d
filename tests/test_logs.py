"""Logs: one line an event in the operator's format, every secret masked, ours and the libraries' alike."""

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import structlog

from app import logs
from app.core.masking import Mask
from app.settings import Settings

pytestmark = pytest.mark.spec("observe")


@pytest.fixture(autouse=True)
def _restored() -> Generator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.basicConfig(handlers=handlers, level=level, force=True)


def configured(capsys: pytest.CaptureFixture[str], **variables: str) -> None:
    """Configure the logs as the daemon does, with one secret known."""
    capsys.readouterr()
    logs.configure(Settings.from_environment(variables), Mask(["canary-secret"]).mask)


def failing(said: str = "canary-secret") -> None:
    raise RuntimeError(f"it said {said}")


def test_json_lines_are_json_and_masked(capsys: pytest.CaptureFixture[str]) -> None:
    configured(capsys, PLURNK_LOG_FORMAT="json")
    structlog.get_logger("plurnk.test").info("action", workspace="w", note='a "canary-secret"\n')
    try:
        failing()
    except RuntimeError:
        structlog.get_logger("plurnk.test").exception("internal", trace="abc")
    logging.getLogger("library").warning("it knows %s", "canary-secret")
    written = capsys.readouterr().err
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["event"] for line in lines[:2]] == ["action", "internal"]
    assert len(lines) == 3
    assert lines[0]["workspace"] == "w"
    assert "RuntimeError" in lines[1]["exception"]
    assert all(line["level"] and line["timestamp"] for line in lines)
    assert "canary-secret" not in written


def test_console_lines_are_masked_and_an_event_cannot_forge_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configured(capsys, PLURNK_LOG_FORMAT="console")
    structlog.get_logger("plurnk.test").info("action", note="one\ntwo canary-secret")
    written = capsys.readouterr().err
    assert "canary-secret" not in written
    assert len(written.splitlines()) == 1


def test_a_console_line_has_the_moment_the_level_the_event_and_sorted_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configured(capsys)
    structlog.get_logger("plurnk.test").info("action", workspace="a b", kind="k.l", server=None, ms=0.5)
    try:
        failing()
    except RuntimeError:
        logging.getLogger("library").exception("two words\nof it")
    first, second, *rest = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"20\S+Z \[info {5}] action {25}kind=k\.l ms=0\.5 server=None workspace='a b'", first)
    assert "[error    ] 'two words\\nof it'" in second
    assert rest[-1] == "RuntimeError: it said ***"


def test_a_line_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configured(capsys, PLURNK_LOG_LEVEL="warning")
    structlog.get_logger("plurnk.test").info("action")
    logging.getLogger("library").info("chatter")
    assert capsys.readouterr().err == ""


def test_a_line_that_cannot_be_written_costs_nothing_but_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every write to this device says that the disk is full.
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr("sys.stderr", full)
        logs.configure(Settings.from_environment({}), Mask([]).mask)
        for number in range(1000):
            structlog.get_logger("plurnk.test").info("action", number=number)
            logging.getLogger("library").warning("it is %s", "full")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # lets it be closed


@pytest.mark.spec("shutdown")
def test_a_request_that_the_shutdown_cut_off_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    configured(capsys)
    for failure in (asyncio.CancelledError(), RuntimeError("a bug")):
        logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=failure)
    written = capsys.readouterr().err
    assert "CancelledError" not in written
    assert written.count("Exception in ASGI application") == 1


@pytest.mark.spec("security")
@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_nothing_in_a_line_controls_the_terminal_that_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    evil = "x\x1b]0;t\x07\x1b[2J\u202ey\x9b31m\r"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    configured(capsys)
    log = structlog.get_logger("plurnk.test")
    log.warning(evil, reason=evil, members=[evil])
    logging.getLogger("library").error("it says %s", evil)
    try:
        failing(evil)
    except RuntimeError:
        log.exception("internal")
    written = capsys.readouterr().err
    assert "\\x1b]0;t\\x07" in written
    assert "RuntimeError" in written
    colours = re.compile(r"\x1b\[[0-9;]*m")
    assert not set("\x1b\x9b\x07\r\u202e") & set(colours.sub("", written))
    assert ("\x1b[" in written) == is_terminal
