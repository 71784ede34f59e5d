"""The command that helps against a Problem. SPEC §cli, §problems."""

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from app.cli.members import text_of
from app.cli.printable import one_line
from app.core.json_value import JsonObject

_LIST = "See what is attached: plurnk-mcpd list{same}"
_AUTHORIZE = "Sign in: plurnk-mcpd authorize{same} {server}"
_WATCH = "See what is open: plurnk-mcpd watch{same}"
_SETTING = "The operator decides that in {setting}."
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server-exists": "Change it: plurnk-mcpd replace{same} {server} …, or plurnk-mcpd detach{same} {server} first",
        "server-not-found": _LIST,
        "server-changed": _LIST,
        "server-not-connected": "See why: plurnk-mcpd list{same}; then: plurnk-mcpd reconnect{same} {server}",
        "server-busy": "Wait, or end what runs: plurnk-mcpd cancel{same} {operation}",
        "protocol-revision-unsupported": (
            "Upgrade it, or use another: plurnk-mcpd replace{same} {server} … where it is attached already"
        ),
        "reference-missing": "Set {variable} in the daemon's environment or in its .env file, and restart it.",
        "reference-refused": "The operator allows names in PLURNK_REFERENCES.",
        "stdio-refused": "The operator decides that in PLURNK_STDIO_POLICY and PLURNK_STDIO_COMMANDS.",
        "address-refused": _SETTING,
        "too-many": _SETTING,
        "workspace-refused": "Give the token of that workspace, or the operator's: plurnk-mcpd token",
        "unauthenticated": 'Give the token: export PLURNK_TOKEN="$(plurnk-mcpd token)"',
        "host-refused": "Use the address in daemon.json, or have PLURNK_ALLOWED_HOSTS name this one.",
        "authorization-refused": _AUTHORIZE,
        "oauth-not-pending": _AUTHORIZE,
        "oauth-callback-invalid": _AUTHORIZE,
        "oauth-target-conflict": _LIST,
        "tool-not-found": "See the names of its tools: plurnk-mcpd tools{same} {server}",
        "arguments-invalid": "See what it takes: plurnk-mcpd tools{same} {server}",
        "resource-not-found": "See what it lists: plurnk-mcpd read{same} {server}",
        "prompt-not-found": "See what it lists: plurnk-mcpd read{same} {server} --prompts",
        "interrupt-not-found": _WATCH,
        "interrupt-expired": _WATCH,
        "interrupt-conflict": _WATCH,
        "operation-not-found": _WATCH,
        "definition-invalid": "Correct it and try again; GET /v1/schemas/server-definition is its schema.",
        "store-unavailable": "Try again; the daemon's log says what keeps it from its database.",
        "internal": "The daemon's log has the rest; look there for the trace id.",
    }
)
"""What helps, by the code of a Problem; where there is none, its detail says all there is to say."""


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
    operations = problem.get("operations")
    facts = {fact: text_of(problem, fact) for fact in ("server", "variable", "setting")}
    facts["operation"] = str(operations[0]) if isinstance(operations, list) and operations else ""
    for fact, text in facts.items():
        way = way.replace(f"{{{fact}}}", shlex.quote(one_line(text)) if text else fact.upper())
    return way
