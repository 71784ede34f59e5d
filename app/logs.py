"""Structured logs: one line an event, every secret masked, ours and the libraries' alike. SPEC §observe."""

import asyncio
import io
import logging
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, Processor
from typing_extensions import override

from app.log_lines import LogLines, LogLinesHandler
from app.settings import Settings

_BARE = re.compile(r"[\w./:@+-]+")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(settings: Settings, mask: Callable[[str], str]) -> LogLines:
    """Send structlog's and the standard library's records to stderr, in the format the operator chose.

    Returns where they go, to be flushed by whoever ends the process.
    """
    level = LEVELS[settings.log_level]
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        _add_moment,
    ]
    last: list[Processor] = (
        [structlog.processors.format_exc_info, _render_json] if settings.log_format == "json" else _console()
    )

    lines = LogLines(cast("TextIO", _Output(sys.stderr)), mask)
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    handler = LogLinesHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    handler.addFilter(_is_no_cancellation)
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    return lines


def _add_moment(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Add what structlog's ``TimeStamper`` adds, without its three further calls."""
    event["timestamp"] = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return event


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


def _render_json(_logger: Any, _method: str, event: EventDict) -> str:
    return orjson.dumps(event, default=repr).decode()


def _render_plain(_logger: Any, _method: str, event: EventDict) -> str:
    """Return the line that structlog's console renderer writes without colours, for a quarter of what it costs."""
    moment, level, name = event.pop("timestamp"), event.pop("level"), str(event.pop("event", ""))
    traceback = event.pop("exception", None)
    stated = " ".join(f"{key}={_stated(value)}" for key, value in sorted(event.items()))
    line = f"{moment} [{level:<9}] {name if name.isprintable() else repr(name):<30} {stated}".rstrip()
    return line if traceback is None else f"{line}\n{_harmless(traceback)}"


def _escape(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Return the event with what a terminal obeys as its escape: strangers write into it."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = _harmless(value) if key == "exception" else repr(value)
    return event


def _harmless(text: str) -> str:
    return "\n".join(line if line.isprintable() else repr(line)[1:-1] for line in text.splitlines())


def _stated(value: object) -> str:
    """Return the value so that it forges neither another one nor a line."""
    return value if isinstance(value, str) and _BARE.fullmatch(value) else repr(value)


def _console() -> list[Processor]:
    """Return what writes for a person: in colours on a terminal, else plain."""
    if not sys.stderr.isatty():
        return [structlog.processors.format_exc_info, _render_plain]
    return [structlog.processors.format_exc_info, _escape, structlog.dev.ConsoleRenderer()]
