"""``python -m tests.soak``: soak a daemon for minutes or hours, and print the figures. SPEC §limits, §lifecycle.

``SOAK_MINUTES`` says how long (3), ``SOAK_SEED`` what chance begins from, ``SOAK_WORKSPACES`` how many there are (300),
``SOAK_CLIENTS`` how many use them (12), and ``SOAK_PAUSE`` how many seconds a client rests at most (0), where others
need the machine as well. From ``RESTED_MINUTES`` on the daemon is left alone for ten minutes at the end, so that
nothing is kept any more when its memory is looked at; ``SOAK_REST=1`` has that for a shorter one.
"""

import logging
import os
import secrets
import sys
import tempfile
from pathlib import Path

import anyio

from tests.soak.report import faults, figures_of
from tests.soak.soaking import Effort, soak

RESTED_MINUTES = 20


def main() -> int:
    """Return the exit status: 1 where something was said, left or written that must not be."""
    minutes = float(os.environ.get("SOAK_MINUTES") or 3)
    effort = Effort(
        seconds=60 * minutes,
        is_rested=minutes >= RESTED_MINUTES or bool(os.environ.get("SOAK_REST")),
        workspaces=int(os.environ.get("SOAK_WORKSPACES") or 300),
        clients=int(os.environ.get("SOAK_CLIENTS") or 12),
        pause=float(os.environ.get("SOAK_PAUSE") or 0),
        seed=int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**6)),
    )
    print(f"seed {effort.seed}", flush=True)
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(prefix="plurnk-soak-") as directory:
        try:
            figures = anyio.run(soak, Path(directory), effort)
        except BaseExceptionGroup as group:
            for fault in faults(group):
                print(f"{type(fault).__name__}: {fault}")
            return 1
    print(figures_of(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
