"""``python -m benchmarks``: the quick run; ``--full``: every scenario; ``--results DIRECTORY``: where it is written."""

import argparse
import os
import signal
import tempfile
from pathlib import Path

import anyio

from benchmarks.blocks import Effort
from benchmarks.calls import http_calls, stdio_calls
from benchmarks.gateways import QUICK
from benchmarks.lifecycle import lifecycle
from benchmarks.processes import ROOT, pin_here
from benchmarks.report import Circumstances, write
from benchmarks.targets import backend
from benchmarks.verdicts import verdicts

RESULTS = ROOT / "benchmarks" / "results"
SIZES = (100, 10_000, 1_000_000)
"""Bytes of the results that a full run calls for."""


async def run(
    results: Path,
    *,
    is_full: bool = False,
    effort: Effort | None = None,
    servers: int = 200,
    peers: bool = True,
    connect_timeout_ms: int = 30_000,
) -> None:
    """Measure everything once and write it down."""
    pin_here()
    effort = effort or (Effort(rounds=9, block_s=1.0) if is_full else Effort())
    in_flight = (1, 8, 32, 256) if is_full else (1, 32)
    gateways = QUICK if peers else ()
    before = os.getloadavg()[0]
    with backend() as server, tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        figures = await http_calls(
            server, directory, gateways, in_flight=in_flight, effort=effort, sizes=SIZES if is_full else ()
        )
        figures += await stdio_calls(directory, in_flight=(1, 32), effort=effort)
        life = await lifecycle(
            server, directory, servers=servers, effort=effort, connect_timeout_ms=connect_timeout_ms
        )
    write(results, figures, list(verdicts(figures, life)), Circumstances(before, os.getloadavg()[0]))


def main() -> None:
    """Run from the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, too
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "--full", action="store_true", help="longer blocks, more rounds, more calls in flight"
    )
    parser.add_argument("--no-peers", action="store_true", help="without the gateways of others")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()

    async def measure() -> None:
        await run(given.results, is_full=given.full, peers=not given.no_peers)

    anyio.run(measure, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
