"""What one change writes to SQLite: transactions and pages, counted in its write-ahead log.

https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Client
from benchmarks.rows import Row
from benchmarks.targets import Backend, Daemon, Json, http_definitions

EACH = 10
"""Changes of one kind; all pages of all of them are fewer than SQLite lets the log grow to before it begins anew."""
_HEADER, _FRAME = 32, 24
"""Bytes before the first frame, and before the page of each."""


@dataclass(frozen=True)
class Written:
    """What a log has."""

    transactions: int
    pages: int


def written(log: Path) -> Written:
    """Return what was written to the log since it was begun."""
    data = log.read_bytes() if log.exists() else b""
    if len(data) < _HEADER:
        return Written(0, 0)
    size, salts = int.from_bytes(data[8:12]), data[16:24]
    transactions = pages = 0
    for start in range(_HEADER, len(data) - _FRAME - size + 1, _FRAME + size):
        if data[start + 8 : start + 16] != salts:
            break  # what an earlier round of the log left
        pages += 1
        transactions += int.from_bytes(data[start + 4 : start + 8]) != 0  # the last page of a transaction
    return Written(transactions, pages)


async def changes(backend: Backend, directory: Path) -> list[Row]:
    """Return what a change of each kind writes, its row of the audit among it."""
    daemon, rows = Daemon(directory), list[Row]()
    definitions = http_definitions(backend.servers(EACH))
    names = [str(definition["name"]) for definition in definitions]
    kinds: dict[str, list[Json]] = {
        "attach": [{"server": definition} for definition in definitions],
        "replace": [{"server": {**definition, "read": []}} for definition in definitions],
        "reconnect": [{"name": name} for name in names],
        "detach": [{"name": name} for name in names],
    }
    with daemon.process:
        await daemon.ready()
        client, log = Client(daemon.url), daemon.home / "plurnk.db-wal"
        before = written(log)
        for kind, members in kinds.items():
            for each in members:
                await daemon.act(client, {"kind": f"workspace.mcp.{kind}", **each})
            after = written(log)
            transactions, pages = after.transactions - before.transactions, after.pages - before.pages
            rows += [
                Row(f"SQLite, one {kind}: transactions", transactions / EACH),
                Row(f"SQLite, one {kind}: pages written", pages / EACH),
            ]
            before = after
        client.close()
    return rows
