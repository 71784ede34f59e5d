"""The file that remembers which process groups run, for the start after a crash. SPEC §connection, §state.

A journal of the same lines that the reaper hears, appended without waiting for the disk: it has to survive
the daemon's death, not the machine's. It holds numbers and start times only.
"""

import contextlib
import os
from pathlib import Path

import anyio.to_thread
import structlog

from app.connections.process_group import end_groups
from app.connections.reaper_process import note

COMPACT_AT = 1000
"""Lines after which the journal is written anew with the living groups alone."""

_log = structlog.get_logger(__name__)


class ChildRecord:
    """The journal of one daemon; only the holder of the home's lock may have one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._groups: dict[int, str] = {}
        self._descriptor: int | None = None
        self._lines = 0
        self._has_failed = False

    async def end_survivors(self) -> int:
        """Return how many groups of an earlier daemon were alive and are ended now; the journal is gone then.

        A group whose leader is gone, or whose number now belongs to a process that started at another time,
        is left alone: nobody could tell it from a stranger's.
        """
        earlier = self._read()
        ended = 0
        if earlier:
            ended = len(await anyio.to_thread.run_sync(lambda: _end_recorded(earlier)))
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        return ended

    def add(self, group: int, started: str) -> None:
        """Remember a group that runs."""
        self._groups[group] = started
        self._append(f"+ {group} {started}\n")

    def remove(self, group: int) -> None:
        """Forget a group that ended."""
        if self._groups.pop(group, None) is not None:
            self._append(f"- {group}\n")

    def close(self) -> None:
        """Close the journal, and remove it where no group is left."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if not self._groups:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _read(self) -> dict[int, str | None]:
        """Return the groups that were not noted to have ended; a torn last line is no line."""
        try:
            text = self._path.read_text("ascii", "replace")
        except FileNotFoundError:
            return {}
        groups: dict[int, str | None] = {}
        for line in text.split("\n")[:-1]:
            note(groups, line)
        return groups

    def _append(self, line: str) -> None:
        """Write one line; a full or read-only disk costs the record, never the server, and is logged once."""
        try:
            if self._lines >= max(COMPACT_AT, 4 * len(self._groups)):
                self._compact()
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(self._descriptor, line.encode("ascii"))
            self._lines += 1
        except OSError as error:
            if not self._has_failed:
                _log.warning("child record not written", path=str(self._path), reason=error.strerror)
            self._has_failed = True

    def _compact(self) -> None:
        """Replace the journal by one that holds the living groups alone; the caller's line follows."""
        fresh = self._path.with_name(f"{self._path.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(
                descriptor, "".join(f"+ {group} {at}\n" for group, at in self._groups.items()).encode("ascii")
            )
        finally:
            os.close(descriptor)
        fresh.replace(self._path)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._lines = len(self._groups)


def _end_recorded(groups: dict[int, str | None]) -> list[int]:
    """End the groups of a record that can be proven to be the ones it means."""
    proven = {group: started for group, started in groups.items() if started is not None}
    return end_groups(proven, trusts_a_missing_leader=False, grace_s=1.0)
