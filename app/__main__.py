"""``python -m app`` and ``plurnk-mcpd``: the daemon's commands and the client's on one program. SPEC §cli."""

import io
import os
import sys
from pathlib import Path

from app import environment, shipped
from app.cli.app import app as program
from app.daemon_commands import register


def main() -> None:
    """Run the command that the arguments name; the client's see the same merged environment as the daemon's."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without a character shows its escape; what was done is not reported as a failure.
            stream.reconfigure(errors="backslashreplace")
    register(program)
    merged = environment.load(os.environ, Path.cwd(), shipped.path(".env.defaults").read_text("utf-8"))
    program(obj=merged.values)


if __name__ == "__main__":
    main()
