"""``make fuzz``: every target in turns until the time is over; exit status 1 where a law was broken."""

import logging
import os
import random
import sys
import time
from pathlib import Path

import structlog

from tests.fuzz.engine import fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Return the exit status after ``FUZZ_SECONDS`` shared by the targets, those named on the command line alone."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    chosen = [target for target in TARGETS if not sys.argv[1:] or target.name in sys.argv[1:]]
    each = float(os.environ.get("FUZZ_SECONDS", "120")) / max(1, len(chosen))
    seed = int(os.environ.get("FUZZ_SEED", str(random.SystemRandom().randrange(2**32))))
    print(f"seed {seed}, {each:.1f} s a target")
    print(f"{'target':<22}{'executions':>11}{'corpus':>8}{'lines':>7}{'slowest ms':>12}{'broken':>8}")
    broken = executions = corpus = 0
    for target in chosen:
        ends = time.monotonic() + each
        figures = fuzz(target, seed=seed, goes_on=lambda _, ends=ends: time.monotonic() < ends)
        executions, corpus = executions + figures.executions, corpus + len(figures.corpus)
        broken += len(figures.broken)
        print(
            f"{target.name:<22}{figures.executions:>11}{len(figures.corpus):>8}{figures.lines:>7}"
            f"{figures.slowest_s * 1000:>12.1f}{len(figures.broken):>8}",
            flush=True,
        )
        for each_broken in figures.broken:
            print(f"  {each_broken}"[:2000])
        if (kept := os.environ.get("FUZZ_SLOWEST")) is not None:
            (Path(kept) / target.name).write_bytes(figures.slowest)
    print(f"{'all':<22}{executions:>11}{corpus:>8}{'':>19}{broken:>8}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
