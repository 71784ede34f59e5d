"""What a process holds: its descendants and its sockets, read from Linux's /proc. SPEC §connection."""

import os
from pathlib import Path

import anyio


def children(pid: int) -> set[int]:
    """Return the ids of the living descendants of a process, zombies included."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    frontier = {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found


def command_lines(pids: set[int]) -> dict[int, str]:
    """Return the command lines of the processes that are still there."""
    lines: dict[int, str] = {}
    for pid in pids:
        try:
            lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
    return lines


def peers_of(pid: int) -> dict[int, str]:
    """Return the descendants of a daemon that are MCP peers of these tests, with their command lines."""
    return {child: line for child, line in command_lines(children(pid)).items() if "/support/peers/" in line}


def connections_to(pid: int, port: int) -> int:
    """Return how many established TCP connections a process has to a loopback port."""
    inodes: set[str] = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = (line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" and row[9] in inodes for row in rows)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def processor_seconds(pid: int) -> float:
    """Return how long the process has computed so far, for itself and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until_gone(pids: set[int], seconds: float = 15.0) -> None:
    """Return once none of the processes is alive.

    Raises:
        TimeoutError: some still are.
    """
    with anyio.fail_after(seconds):
        while any(is_alive(pid) for pid in pids):
            await anyio.sleep(0.02)


async def until_exists(path: Path, seconds: float = 15.0) -> None:
    """Return once the file exists: another process has got that far.

    Raises:
        TimeoutError: it never appeared.
    """
    with anyio.fail_after(seconds):
        while not await anyio.Path(path).exists():
            await anyio.sleep(0.01)
