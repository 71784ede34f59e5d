"""Process groups by number: who they are, signalling them, and ending what is left of them. SPEC §connection.

A group is known by the process id of the leader we started. That number may be taken by a stranger once the
group is gone, so whoever keeps one for long keeps the leader's start time beside it. Standard library only:
the reaper imports this module without any of the daemon's dependencies.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

POLL_S = 0.02


def start_time(pid: int) -> str | None:
    """Return when the process started, as text that no other process of this number has; None if not known.

    Linux counts in ticks since boot, so the boot belongs to it; elsewhere ``ps`` tells the wall clock.
    """
    if sys.platform == "linux":
        return _linux_start_time(pid)
    return _ps_start_time(pid)


def _linux_start_time(pid: int) -> str | None:
    """Return the boot id and the ticks from boot to start."""
    fields = _stat_fields(str(pid))
    if not fields:
        return None
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as boot:  # noqa: PTH123 as below
            return f"{boot.read().decode().strip()}/{fields[19].decode()}"
    except OSError:
        return None


def _ps_start_time(pid: int) -> str | None:
    """Return what ``ps`` says of the process's start."""
    try:
        answer = subprocess.run(  # noqa: S603 an absolute path and a number
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            check=False,
            env={"LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return " ".join(answer.stdout.decode("ascii", "replace").split()) or None


def has_members(group: int) -> bool:
    """Return whether the group has a process that is more than a zombie, which nobody can end."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody is there whom we may not signal; on macOS a zombie is such a one
    return sys.platform != "linux" or _has_living_members(group)


def _has_living_members(group: int) -> bool:
    """Return whether a process of the group is alive, of all that ``/proc`` shows.

    Orphans are reaped by process 1, which takes its time, and in some containers for ever.
    """
    try:
        numbers = [entry for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 pathlib is slow
    except OSError:
        return True
    return any(_is_living_member(number, group) for number in numbers)


def _is_living_member(number: str, group: int) -> bool:
    fields = _stat_fields(number)
    return fields is not None and int(fields[2]) == group and fields[0] not in {b"Z", b"X"}


def _stat_fields(number: str) -> list[bytes] | None:
    """Return the fields of ``/proc/<pid>/stat`` from the third on: the name before may hold anything."""
    try:
        with open(f"/proc/{number}/stat", "rb") as stat:  # noqa: PTH123 pathlib is slow to import in the reaper
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return None


def is_left_behind(group: int) -> bool:
    """Return whether a group whose leader has been reaped still has living members.

    While it has, its number is nobody else's. A process of that number is therefore a stranger's, and so is
    the group that it may lead. Members that became our own children (we may be process 1) are reaped.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.kill(group, 0)
    except ProcessLookupError:
        return has_members(group)
    except PermissionError:
        return False
    return False


def signal_group(group: int, number: int) -> bool:
    """Return whether the signal reached a member of the group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_ours(group: int, started: str | None, *, trusts_a_missing_leader: bool) -> bool:
    """Return whether the group of this number is the one whose leader started then.

    A leader that is gone cannot be asked. Who heard of every group's end may trust the number all the same;
    who reads it from an old record may not.
    """
    now = start_time(group)
    if now is None:
        return trusts_a_missing_leader
    return started is None or now == started


def end_groups(
    groups: Mapping[int, str | None], *, trusts_a_missing_leader: bool, grace_s: float
) -> list[int]:
    """Return the groups that were ours and alive, after SIGTERM, at most ``grace_s`` and SIGKILL.

    Blocks; for the reaper and for a thread.
    """
    ours = [
        group
        for group, started in groups.items()
        if has_members(group) and is_ours(group, started, trusts_a_missing_leader=trusts_a_missing_leader)
    ]
    for group in ours:
        signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    left = ours
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [group for group in left if has_members(group)]
    for group in left:
        signal_group(group, signal.SIGKILL)
    return ours
