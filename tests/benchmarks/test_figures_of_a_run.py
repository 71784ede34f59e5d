"""What figures are made of: blocks in turn, minutes of full load, frames of SQLite's log."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.blocks import Effort, Figure, measured
from benchmarks.changes import Written, written
from benchmarks.endurance import MIB, Minute, flatness
from benchmarks.load import AnsweredWrong, Client, Sample
from benchmarks.targets import Target

ONCE = Effort(rounds=2, block_s=0, least=1)


async def answered(in_flight: int, count: int) -> Sample:
    return Sample(1.0, (0.1,) * count)


async def refused(in_flight: int, count: int) -> Sample:
    raise AnsweredWrong("HTTP/1.1 503 too many")


async def test_a_peer_that_cannot_is_left_out_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = [Target("peer", None, refused, may_fail=True), Target("ours", None, answered)]
    figures = await measured("call", targets, in_flight=8, effort=ONCE)
    assert [(each.target, each.p50_ms, each.rate) for each in figures] == [("ours", 100, 8)]
    assert "left out of call, 8 in flight: peer: HTTP/1.1 503 too many" in capsys.readouterr().err


async def test_a_daemon_that_cannot_ends_the_run() -> None:
    with pytest.raises(AnsweredWrong):
        await measured("call", [Target("ours", None, refused)], in_flight=8, effort=ONCE)


def minute(p50_ms: float, memory_mib: int) -> Minute:
    return Minute(Figure("", "", 32, 0.4, p50_ms, p99_ms=20, rate=3000, requests=1), memory_mib * MIB)


@pytest.mark.parametrize(
    "course, latency, gained, words",
    [
        ([minute(9, 50), *[minute(10, 100)] * 9], 1, 0, ["met", "met"]),
        ([minute(10, 100 + number) for number in range(10)], 1, 1, ["met", "met"]),
        ([minute(10, 100 + 2 * number) for number in range(10)], 1, 2, ["met", "NOT met"]),
        ([minute(10 + number, 100) for number in range(10)], 18 / 12, 0, ["NOT met", "met"]),
        ([minute(10, 100)], 1, 0, ["met", "met"]),
    ],
    ids=["flat after the first", "a MiB a minute", "two", "slower and slower", "one minute"],
)
def test_flat_is_what_ends_as_it_began(
    course: list[Minute], latency: float, gained: float, words: list[str]
) -> None:
    rows = {row.name.partition(": ")[2]: row for row in flatness(course)}
    assert rows["p50, its last third to its first"].measured == pytest.approx(latency)
    assert rows["memory gained a minute"].measured == pytest.approx(gained)
    assert [row.word for row in rows.values() if row.bound is not None] == words


def test_what_a_log_has_is_what_sqlite_says(tmp_path: Path) -> None:
    log = tmp_path / "some.db-wal"
    assert written(log) == Written(0, 0)
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table t (x)")
        for number in range(20):
            database.execute("insert into t values (?)", ["x" * 500 * number])
        _, frames, _ = database.execute("pragma wal_checkpoint(passive)").fetchone()
        assert written(log) == Written(21, frames)
        # The log begins anew over the frames that are in the database: they no longer count.
        size = log.stat().st_size
        database.execute("insert into t values ('y')")
        _, frames, _ = database.execute("pragma wal_checkpoint(passive)").fetchone()
        assert log.stat().st_size == size
        assert written(log) == Written(1, frames)


async def test_a_connection_that_the_gateway_closed_is_opened_again() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    opened = list[int]()

    async def answered_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        await reader.readexactly(4)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answered_once, "127.0.0.1", 0) as server:
        client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        sample = await client.run([b"ping"], in_flight=2, count=6, expected=b"ok")
        client.close()
    assert (len(sample.latencies), len(opened)) == (6, 6)
