"""``python -m app`` and ``plurnk-mcpd``: the daemon's commands and the client's on one program. SPEC §cli."""

from app.cli.app import app as program
from app.daemon_commands import register


def main() -> None:
    """Run the command that the arguments name."""
    register(program)
    program()


if __name__ == "__main__":
    main()
