"""The two tables of docs/compatibility.md: what came of each published server. SPEC §revision."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.published import Peer

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
NONE = "\u2013"
ATTACHED = (
    "server",
    "version",
    "over",
    "calls itself",
    "tools",
    "read",
    "complete",
    "call",
    "restart",
    "note",
)
REFUSED = ("server", "version", "over", "answer to `server/discover`")


@dataclass(frozen=True, slots=True)
class Attached:
    """What was seen of a server that works."""

    identity: str
    tools: int
    kinds: frozenset[str]
    """The kinds of the actions that it answered well, before and after the restart."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What was seen of a server that is refused."""

    answered: str


def names(peer: Peer) -> list[str]:
    """Return the cells that name a row."""
    return [f"`{peer.package}` ({peer.registry})", peer.version, peer.over]


def row(peer: Peer, seen: Attached | Refused) -> list[str]:
    """Return the cells of one row."""
    if isinstance(seen, Refused):
        return [*names(peer), seen.answered]
    kinds = ("workspace.mcp.read", "workspace.mcp.complete", "workspace.mcp.call")
    done = ["yes" if kind in seen.kinds else NONE for kind in kinds]
    return [*names(peer), seen.identity, str(seen.tools), *done, "yes", peer.note or NONE]


def rows_of(text: str, table: str) -> list[list[str]]:
    """Return the cells of every row of the page's table, ``attached`` or ``refused``, without its head."""
    (body,) = re.findall(rf"<!-- {table} -->\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    return [line.strip("| ").split(" | ") for line in body.splitlines()[2:]]


def with_rows(text: str, attached: list[list[str]], refused: list[list[str]]) -> str:
    """Return the page with these rows in its tables."""
    for table, head, rows in (("attached", ATTACHED, attached), ("refused", REFUSED, refused)):
        lines = [head, ["---"] * len(head), *rows]
        body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        text = re.sub(rf"(<!-- {table} -->\n).*?(<!-- end -->)", rf"\g<1>{body}\g<2>", text, flags=re.DOTALL)
    return text
