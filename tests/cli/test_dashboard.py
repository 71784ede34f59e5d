"""What ``watch`` shows of a state, as a screen and as lines. SPEC §cli."""

import io

import pytest
from rich.console import Console

from app.cli.dashboard import dashboard, line_of
from app.cli.watched_state import Change, WatchedState
from app.core.json_value import JsonObject

pytestmark = pytest.mark.spec("cli")

URL = "https://as.example/authorize?state=1"
STATE: JsonObject = {
    "servers": {
        "time": {
            "name": "time",
            "source": "workspace",
            "transport": "stdio",
            "state": "connected",
            "tools": 2,
            "resources": 0,
            "prompts": 1,
        },
        "docs": {"name": "docs", "source": "service", "transport": "http", "state": "unavailable"},
    },
    "pending": {
        "git": {"name": "git", "action": "workspace.mcp.attach", "expiresAt": "2026-12-01T00:00:00Z"}
    },
    "operations": {
        "op-1": {"server": "time", "tool": "now", "state": "working"},
        "op-2": {
            "server": "time",
            "state": "working",
            "progress": {"progress": 1, "total": 4, "message": "one\x1b[2J"},
        },
    },
    "interactions": {
        "int-1": {
            "server": "time",
            "tool": "now",
            "message": "Sure?\x1b[2J",
            "expiresAt": "2026-12-01T00:00:00Z",
        }
    },
}


def shown(document: JsonObject, **urls: str) -> list[str]:
    state = WatchedState()
    state.take({"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": document}})
    written = io.StringIO()
    console = Console(file=written, width=100)
    console.print(dashboard(state, urls, console=console, workspace="team", same=" -w team"))
    return [line.rstrip() for line in written.getvalue().splitlines() if line.strip()]


def test_the_screen_shows_servers_sign_ins_operations_and_questions() -> None:
    heading, columns, _, *rest = shown(STATE, git=URL)
    assert heading == "Workspace team"
    assert columns.split() == ["server", "state", "from", "transport", "tools", "resources", "prompts"]
    assert [line.split() for line in rest[:2]] == [
        ["docs", "unavailable", "service", "http", "-", "-", "-"],
        ["time", "connected", "workspace", "stdio", "2", "0", "1"],
    ]
    assert rest[2:] == [
        "Sign-in git until 2026-12-01T00:00:00Z",
        f"  {URL}",
        "  plurnk-mcpd authorize -w team git",
        "Operations",
        "  op-1: time · now working",
        "  op-2: time working        ━━━━━                 1 of 4: one\\x1b[2J",
        "Questions",
        "  int-1: time · now Sure?\\x1b[2J (until 2026-12-01T00:00:00Z)",
    ]


def test_an_empty_workspace_is_said_to_be_empty() -> None:
    assert shown({}) == ["Workspace team", "  Nothing is attached."]


@pytest.mark.parametrize(
    "change, line",
    [
        (Change("servers", "a", {"state": "connected", "tools": 3}), "server a: connected, 3 tools"),
        (Change("servers", "a", {"state": "preparing"}), "server a: preparing"),
        (Change("servers", "a", None), "server a: gone"),
        (Change("pending", "git", {"expiresAt": "soon"}), f"sign-in git: waits until soon at {URL}"),
        (Change("pending", "x", {"expiresAt": "soon"}), "sign-in x: waits until soon"),
        (Change("pending", "x", None), "sign-in x: over"),
        (Change("operations", "op", {"server": "a", "state": "working"}), "operation op: a working"),
        (
            Change("operations", "op", {"server": "a", "state": "working", "progress": {"progress": 2.5}}),
            "operation op: a working 2.5",
        ),
        (Change("operations", "op", None), "operation op: ended"),
        (
            Change("interactions", "i", {"server": "a", "message": "Sure?", "expiresAt": "soon"}),
            "question i: a Sure? (until soon)",
        ),
        (Change("interactions", "i", None), "question i: closed"),
    ],
)
def test_a_change_is_a_line(change: Change, line: str) -> None:
    assert line_of(change, {"git": URL}) == line
