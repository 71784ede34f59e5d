"""``python -m benchmarks``: the quick run; ``--full``: every scenario; ``--results DIRECTORY``: where it is written."""

import argparse
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import anyio

from benchmarks.calls import http_calls, stdio_calls
from benchmarks.endurance import endurance
from benchmarks.lifecycle import lifecycle
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.processes import ROOT, pin_here
from benchmarks.report import Circumstances, write
from benchmarks.targets import backend
from benchmarks.verdicts import verdicts

RESULTS = ROOT / "benchmarks" / "results"


async def run(results: Path, plan: Plan) -> None:
    """Measure everything once and write it down."""
    pin_here()
    before = os.getloadavg()[0]
    with backend() as server, tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        figures = await http_calls(server, directory, plan)
        figures += await stdio_calls(directory, plan)
        rows = await lifecycle(server, directory, extent=plan.extent, effort=plan.effort)
        if plan.minutes:
            course, flat = await endurance(
                server, directory / "endurance", minutes=plan.minutes, seconds=plan.minute_s
            )
            figures, rows = [*figures, *course], [*rows, *flat]
    rows = [*verdicts(figures), *rows]
    peers = (*plan.gateways, *plan.stdio_gateways)
    write(results, figures, rows, Circumstances(before, os.getloadavg()[0], plan.effort, peers))


def main() -> None:
    """Run from the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, too
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--full", action="store_true", help="every scenario, longer blocks, more rounds")
    parser.add_argument("--no-peers", action="store_true", help="without the gateways of others")
    parser.add_argument(
        "--minutes", type=int, help="at full load; without it 10 in a full run, 0 in a quick one"
    )
    parser.add_argument("--rounds", type=int, help="of blocks; without it 9 in a full run, 5 in a quick one")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    plan = FULL if given.full else QUICK
    if given.no_peers:
        plan = replace(plan, gateways=(), stdio_gateways=())
    if given.rounds is not None:
        plan = replace(plan, effort=replace(plan.effort, rounds=given.rounds))
    if given.minutes is not None:
        plan = replace(plan, minutes=given.minutes)
    results = given.results or (RESULTS / "full" if given.full else RESULTS)
    anyio.run(run, results, plan, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
