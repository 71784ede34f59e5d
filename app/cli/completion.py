"""What the shell completes: names of servers and of tools, asked of the running daemon. SPEC §cli.

A shell waits for it at every Tab: it is bounded in time, says nothing, and knows nothing where no daemon answers.
Offered are only names that every shell takes as they are: the scripts that Typer installs have zsh evaluate what it
is offered and bash expand it, and a server chooses the names of its tools.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer

from app.cli.client import DaemonClient
from app.cli.failures import CommandFailure
from app.cli.members import objects_of, text_of
from app.cli.session import environment_of
from app.cli.target import TargetOptions, find
from app.core.json_value import JsonObject

SECONDS = 1.5
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:,/@+-]*", re.ASCII)
"""Names without a character that some shell expands, splits, evaluates or takes for an option."""


def servers(context: typer.Context, incomplete: str) -> list[str]:
    """Return the servers of the workspace whose names begin so, those that wait for a sign-in too."""
    listed = _asked(context, {"kind": "workspace.mcp.list"})
    known = (
        text_of(each, "name") for part in ("servers", "pending") for each in objects_of(listed.get(part))
    )
    return _beginning(known, incomplete)


def defaults(context: typer.Context, incomplete: str) -> list[str]:
    """Return the servers that a default may lie behind: those of the workspace and the hidden ones."""
    listed = _asked(context, {"kind": "workspace.mcp.list"})
    detached = listed.get("detached")
    hidden = [str(name) for name in detached] if isinstance(detached, list) else []
    return _beginning(
        [*hidden, *(text_of(each, "name") for each in objects_of(listed.get("servers")))], incomplete
    )


def tools(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tools of the server that the line names."""
    listed = _asked(context, {"kind": "workspace.mcp.tools", "server": context.params.get("server")})
    return _beginning((text_of(each, "tool") for each in objects_of(listed.get("tools"))), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)})


def _asked(context: typer.Context, action: JsonObject) -> JsonObject:
    """Return what the daemon answers to an action, or nothing."""
    given: Mapping[str, object] = context.params
    url, home, token_file = given.get("url"), given.get("home"), given.get("token_file")
    options = TargetOptions(
        url if isinstance(url, str) else None,
        home if isinstance(home, Path) else None,
        token_file if isinstance(token_file, Path) else None,
    )
    try:
        with DaemonClient(find(options, environment_of(context))) as client:
            return client.act(str(given.get("workspace") or "default"), action, seconds=SECONDS)
    except CommandFailure:
        return {}
