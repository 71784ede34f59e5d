"""The reaper's program: outlives the daemon just long enough to end what it left running. SPEC §connection.

It hears ``+ <group> <start time>`` and ``- <group>`` on its standard input, one line each. When that pipe
closes the daemon is gone, and every group it has not heard the end of is ended. Signals that a terminal or
a supervisor sends to everybody do not stop it. Standard library only, so that it starts fast and stays
small.
"""

import os
import re
import signal

from app.connections.process_group import end_groups

GRACE_S = 1.0
"""The children's standard input closed with the daemon, so the polite ones are on their way already."""

_CHUNK = 65536
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_GROUP_MAX = 2**31 - 1
"""What the system takes for a process group."""


def main() -> None:
    """Serve until the pipe closes, then end what is left and return."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, str | None] = {}
    heard = b""
    while chunk := os.read(0, _CHUNK):
        *lines, heard = (heard + chunk).split(b"\n")
        for line in lines:
            note(groups, line.decode("ascii", "replace"))
    end_groups(groups, trusts_a_missing_leader=True, grace_s=GRACE_S)


def note(groups: dict[int, str | None], line: str) -> None:
    """Enter one line into the groups; a line that makes no sense changes nothing."""
    sign, _, rest = line.partition(" ")
    number, _, started = rest.partition(" ")
    if not _NUMBER.fullmatch(number) or not 1 < int(number) <= _GROUP_MAX:
        return
    if sign == "+":
        groups[int(number)] = started or None
    elif sign == "-":
        groups.pop(int(number), None)
