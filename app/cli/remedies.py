"""The command that helps against a Problem. SPEC §cli, §problems."""

from app.cli.members import text_of
from app.cli.printable import one_line
from app.core.json_value import JsonObject

REMEDIES = {
    "server-exists": "Detach it first: plurnk-mcpd detach{same} {server}",
    "server-not-found": "See what is attached: plurnk-mcpd list{same}",
    "tool-not-found": "See the names of its tools: plurnk-mcpd tools{same} {server}",
    "server-not-connected": "See why: plurnk-mcpd list{same}",
    "unauthenticated": 'Give the token: export PLURNK_TOKEN="$(plurnk-mcpd token)"',
    "reference-missing": "Set {variable} in the daemon's environment or in its .env file, and restart it.",
    "internal": "The daemon's log has the rest; look there for the trace id.",
}


def remedy(problem: JsonObject, same: str) -> str | None:
    """Return what helps; that trying again may, where nothing else is known to."""
    way = command(problem, same)
    return "Trying again later may help." if way is None and problem.get("retryable") else way


def command(problem: JsonObject, same: str) -> str | None:
    """Return the command that helps, where one does."""
    way = REMEDIES.get(text_of(problem, "code"))
    if way is None:
        return None
    way = way.replace("{same}", same)
    for fact in ("server", "variable"):
        way = way.replace(f"{{{fact}}}", one_line(text_of(problem, fact)) or fact.upper())
    return way
