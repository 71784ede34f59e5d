"""Structured logs: one line an event, every secret masked, ours and the libraries' alike. SPEC §observe."""

import asyncio
import io
import logging
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, TypeAlias, cast

import orjson
import structlog
from structlog.typing import EventDict
from typing_extensions import override

from app.log_lines import LogLines, LogLinesHandler
from app.settings import Settings

Render: TypeAlias = Callable[[EventDict], str]
"""Makes one line of an event, which it may consume."""
_BARE = re.compile(r"[\w./:@+-]+")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(settings: Settings, mask: Callable[[str], str]) -> LogLines:
    """Send structlog's and the standard library's records to stderr, in the format the operator chose.

    Returns where they go, to be flushed by whoever ends the process.
    """
    level = LEVELS[settings.log_level]
    render = _render_json if settings.log_format == "json" else _for_a_person()
    lines = LogLines(cast("TextIO", _Output(sys.stderr)), mask)
    logger = Logger(lines, level, render)

    def the_one(*_: Any, **_ignored: Any) -> Any:
        return logger

    def rendered(_logger: Any, _method: str, event: EventDict) -> str:
        return render(event)

    structlog.configure(wrapper_class=cast("Any", the_one), cache_logger_on_first_use=True)
    handler = LogLinesHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_add_level_and_moment, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, rendered],
        )
    )
    handler.addFilter(_is_no_cancellation)
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    return lines


class Logger:
    """What modules log with: one function renders a line, where structlog would run a chain of processors.

    Nothing can be bound to it, and an event is no template.
    """

    def __init__(self, lines: LogLines, level: int, render: Render) -> None:
        self._lines = lines
        self._level = level
        self._render = render

    def debug(self, event: str, **values: Any) -> None:
        """Log what only whoever looks for a fault wants to know."""
        if self._level <= logging.DEBUG:
            self._lines.debug(self._rendered("debug", event, values))

    def info(self, event: str, **values: Any) -> None:
        """Log what happened as it should."""
        if self._level <= logging.INFO:
            self._lines.info(self._rendered("info", event, values))

    def warning(self, event: str, **values: Any) -> None:
        """Log what the operator may want to change."""
        if self._level <= logging.WARNING:
            self._lines.warning(self._rendered("warning", event, values))

    def error(self, event: str, **values: Any) -> None:
        """Log what failed."""
        self._lines.error(self._rendered("error", event, values))

    def exception(self, event: str, **values: Any) -> None:
        """Log what failed, with the exception that is being handled."""
        self.error(event, exc_info=True, **values)

    def _rendered(self, level: str, event: str, values: EventDict) -> str:
        values["event"], values["level"], values["timestamp"] = event, level, _moment()
        return self._render(values)


def _add_level_and_moment(_logger: Any, method: str, event: EventDict) -> EventDict:
    event["level"], event["timestamp"] = method, _moment()
    return event


def _moment() -> str:
    second, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(second)}.{rest // 1000:06}Z"


@lru_cache(maxsize=1)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[: len("2026-07-28T00:00:00")]


class _Output(io.TextIOBase):
    """Writes what can be written: a full disk, or a reader that left, costs the line, never what it tells of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @override
    def write(self, text: str, /) -> int:
        with suppress(OSError):
            return self._stream.write(text)
        return 0

    @override
    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Return whether a library's record is about more than a request that the shutdown cut off."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _render_json(event: EventDict) -> str:
    return orjson.dumps(_with_traceback(event), default=repr).decode()


def render_plain(event: EventDict) -> str:
    """Return the line that structlog's console renderer writes without colours, for a quarter of what it costs."""
    moment, level, name = event.pop("timestamp"), event.pop("level"), str(event.pop("event", ""))
    traceback = _with_traceback(event).pop("exception", None)
    stated = " ".join([f"{key}={_stated(event[key])}" for key in sorted(event)])
    line = f"{moment} [{level:<9}] {name if name.isprintable() else repr(name):<30} {stated}".rstrip()
    return line if traceback is None else f"{line}\n{_harmless(traceback)}"


def _with_traceback(event: EventDict) -> EventDict:
    """Return the event, with ``exception`` in the place of ``exc_info``."""
    return structlog.processors.format_exc_info(None, "", event) if "exc_info" in event else event


def _escape(event: EventDict) -> EventDict:
    """Return the event with what a terminal obeys as its escape: strangers write into it."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = _harmless(value) if key == "exception" else repr(value)
    return event


def _harmless(text: str) -> str:
    return "\n".join(line if line.isprintable() else repr(line)[1:-1] for line in text.splitlines())


def _stated(value: object) -> str:
    """Return the value so that it forges neither another one nor a line."""
    # Most values are one word, which says so sooner than it matches.
    return value if isinstance(value, str) and (value.isalnum() or _BARE.fullmatch(value)) else repr(value)


def _for_a_person() -> Render:
    """Return what writes for a person: in colours on a terminal, else plain."""
    if not sys.stderr.isatty():
        return render_plain
    coloured = structlog.dev.ConsoleRenderer()
    return lambda event: coloured(None, "", _escape(_with_traceback(event)))
