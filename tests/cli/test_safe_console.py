"""safe_console.py: whatever a daemon or a peer says, nothing of it controls the terminal. SPEC §cli."""

import io
import json
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from anyio import to_thread
from rich.console import Group
from rich.panel import Panel
from rich.text import Text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner, Result

from app.cli.app import app
from app.cli.safe_console import SafeConsole
from tests.support.loopback import served

pytestmark = [pytest.mark.spec("cli", "security"), pytest.mark.timeout(60)]

EVIL = "x\x1b]0;t\x07\x1b[2J\u202egnp\u061c\u200b\x9b31m\r$(id)[red]"
OBEYED = set("\x1b\x9b\x07\r\u202e\u061c\u200b")
AUTHORIZATION = {"url": f"http://127.0.0.1:1/{EVIL}", "expiresAt": EVIL}
SERVER: dict[str, Any] = {
    **dict.fromkeys(("name", "source", "transport", "state", "resources", "prompts"), EVIL),
    **{key: [EVIL] for key in ("tools", "read", "enabledTools")},
    "server": {"name": EVIL, "version": EVIL},
    "withheld": [{"name": EVIL, "reason": EVIL}],
    "problem": {"code": EVIL, "detail": EVIL},
}
PENDING = {"name": EVIL, "action": EVIL, "authorization": AUTHORIZATION}
CONTENT = [{"type": "text", "text": EVIL}, {"type": EVIL, "uri": EVIL, "mimeType": EVIL, "data": EVIL}]
TOOL = dict.fromkeys(("server", "tool", "effect", "description", "signature"), EVIL)
RESULTS: dict[str, dict[str, Any]] = {
    "list": {"servers": [SERVER], "detached": [EVIL], "pending": [PENDING]},
    "attach": {"status": 201, "server": SERVER},
    "reconnect": {"status": 202, "authorization": AUTHORIZATION},
    "tools": {"tools": [TOOL]},
    "call": {"status": 200, "operation": EVIL, "isError": True, "content": CONTENT},
    "read": {"messages": [{"role": EVIL, "content": CONTENT[0]}], "contents": CONTENT},
    "complete": {"completion": {"values": [EVIL], "total": EVIL, "hasMore": True}},
    "cancel": {"status": 200, "operation": EVIL},
    "audit": {"audit": [dict.fromkeys(("at", "actor", "workspace", "kind", "server", "outcome"), EVIL)]},
}
PROBLEM: dict[str, Any] = {
    **dict.fromkeys(("type", "title", "detail", "server", "transport", "reason", "trace", "stderr"), EVIL),
    "status": 409,
    "code": "server-busy",
    "operations": [EVIL],
    "cause": {"detail": EVIL},
    "remote": {"code": EVIL, "message": EVIL},
    "errors": [{"pointer": EVIL, "message": EVIL}],
}
INTERRUPT = {
    **dict.fromkeys(("id", "reason", "message", "expiresAt"), EVIL),
    "responseSchema": {"properties": {EVIL: {"title": EVIL}}},
    "metadata": {"plurnk": {**dict.fromkeys(("operation", "server", "tool", "host"), EVIL), "mode": "form"}},
}
ENTRY = {**SERVER, "message": EVIL, "expiresAt": EVIL, "progress": {"progress": 1, "message": EVIL}}
STATE = {key: {EVIL: ENTRY} for key in ("servers", "pending", "operations", "interactions")}
COMMANDS = [
    "list",
    "attach n http://h/",
    "reconnect n",
    "tools",
    "tools n",
    "call n t",
    "read n u",
    "read n --prompt p",
    "complete n --prompt p a",
    "cancel o",
    "audit",
    "watch --seconds 1",
]


def _events(kind: str, way: str) -> list[Any]:
    ending: dict[str, Any] = {"result": {"kind": EVIL, "ok": True, "result": RESULTS.get(kind, {})}}
    if way == "interrupt":
        ending = {"outcome": {"type": "interrupt", "interrupts": [INTERRUPT]}}
    elif way == "problem":
        ending = {"result": {"kind": EVIL, "ok": False, "problem": PROBLEM}}
    return [
        {"type": "RUN_STARTED"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": STATE}},
        {"type": "ACTIVITY_SNAPSHOT", "activityType": "plurnk.mcp.progress", "content": ENTRY["progress"]},
        *([None] if way == "nonsense" else []),
        {"type": "RUN_FINISHED", **ending},
    ]


def hostile_daemon(way: str) -> Starlette:
    """Return an application that answers every request with what a terminal would obey."""

    async def answer(request: Request) -> Response:
        body: dict[str, Any] = await request.json() if request.method == "POST" else {"kind": "audit"}
        action = body.get("forwardedProps", {}).get("plurnk", {}).get("action", body)
        kind = str(action.get("kind")).rpartition(".")[2]
        if request.url.path == "/":
            stream = "".join(f"data: {json.dumps(event)}\n\n" for event in _events(kind, way))
            return Response(stream, media_type="text/event-stream")
        if way == "problem":
            return JSONResponse(PROBLEM, 409)
        return JSONResponse(RESULTS.get(kind, {}))

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


def _run(words: Sequence[str]) -> Result:
    environment = {"COLUMNS": "120", "PLURNK_TOKEN": "t"}
    return CliRunner().invoke(app, list(words), obj=environment, env=environment)


@pytest.mark.parametrize("way", ["result", "problem", "interrupt", "nonsense"])
async def test_nothing_that_a_daemon_answers_controls_the_terminal_or_the_next_command(way: str) -> None:
    async with served(hostile_daemon(way)) as loopback:
        for line in COMMANDS:
            for flags in ([], ["--json"]) if way == "result" else ([],):
                first, *rest = line.split()
                words = [first, *flags, "--url", loopback.url, *rest]
                ended = await to_thread.run_sync(_run, words)
                assert ended.exception is None or isinstance(ended.exception, SystemExit), (line, ended)
                shown = ended.stdout + ended.stderr
                assert OBEYED & set(shown) == set(), (line, flags, shown)
                for told in shown.splitlines():
                    if "plurnk-mcpd" in told and "$(id)" in told:
                        assert any(word.endswith("$(id)[red]") for word in shlex.split(told)), told


def test_our_own_colours_and_lines_are_kept() -> None:
    written = io.StringIO()
    console = SafeConsole(file=written, force_terminal=True, width=40, color_system="standard")
    console.print(Group(Panel(Text(f"a\n{EVIL}", style="red"), title=Text(EVIL)), Text("b\tc")))
    shown = written.getvalue()
    assert "\x1b[31m" in shown
    assert "\n" in shown
    assert not {"\x07", "\r", "\u202e", "\x9b"} & set(shown)
    assert "\x1b]" not in shown
