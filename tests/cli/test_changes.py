"""``replace``, ``reconnect``, ``restore`` and ``detach`` against a running daemon. SPEC §cli."""

import io
import json
import sys
from collections.abc import Callable, Generator
from subprocess import CompletedProcess

import anyio
import pytest
import typer
from rich.console import Console

from app.cli.changes import end_change
from app.cli.screen import Screen
from app.cli.session import Session
from app.cli.target import TargetOptions
from app.core.json_value import JsonObject
from tests.support.daemon import Daemon
from tests.support.peers.programs import SCRIPTED

Run = Callable[..., CompletedProcess[str]]
PEER = (str(SCRIPTED), "stdio", "good")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Daemon]:
    """A daemon with a service default."""
    defaults = {"PLURNK_MCP_given": sys.executable, "PLURNK_MCP_given_ARGS": json.dumps(PEER)}
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), defaults)
    try:
        yield anyio.run(daemon.start)
    finally:
        daemon.close()


@pytest.mark.spec("cli", "effective")
def test_a_default_is_replaced_reconnected_detached_and_restored(plurnk: Run) -> None:
    replaced = plurnk("replace", "given", "--tools", "echo", "--", sys.executable, *PEER)
    assert (replaced.returncode, replaced.stderr) == (0, "")
    assert "✓ replaced given (stdio, workspace default)" in replaced.stdout
    assert "tools    echo\n" in replaced.stdout
    reconnected = plurnk("reconnect", "given")
    assert (reconnected.returncode, reconnected.stderr) == (0, "")
    assert "✓ reconnected given (stdio, workspace default)" in reconnected.stdout
    detached = plurnk("detach", "given")
    assert (detached.returncode, detached.stdout) == (0, "✓ detached given (workspace default)\n")
    assert "Hidden defaults: given" in plurnk("list").stdout
    restored = plurnk("restore", "given", "--json")
    document = json.loads(restored.stdout)
    assert (restored.returncode, document["kind"], document["ok"]) == (0, "workspace.mcp.restore", True)
    assert document["result"]["server"]["source"] == "service"


@pytest.mark.spec("cli", "problems")
@pytest.mark.parametrize(
    "words, says",
    [
        (("reconnect", "absent"), "server-not-found"),
        (("restore", "absent"), "server-not-found"),
        (("replace", "absent", "--", sys.executable, *PEER), "server-not-found"),
    ],
)
def test_a_name_that_is_not_there_says_where_to_look(plurnk: Run, words: tuple[str, ...], says: str) -> None:
    done = plurnk(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert says in done.stderr
    assert "Next: See what is attached: plurnk-mcpd list" in done.stderr


@pytest.mark.spec("cli", "oauth")
def test_a_change_that_needs_a_sign_in_says_where_and_with_which_command() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(Console(file=out, width=60), Console(file=err, width=60), " -w team")
    session = Session("workspace.mcp.attach", "team", False, TargetOptions(), {}, screen)
    url = "https://as.example/authorize?" + "x" * 100
    waiting: JsonObject = {"status": 202, "authorization": {"url": url, "expiresAt": "2026-12-01T00:00:00Z"}}
    with pytest.raises(typer.Exit) as ended:
        end_change(session, "attached", "docs", waiting)
    assert ended.value.exit_code == 6
    assert out.getvalue() == f"docs waits for a sign-in until 2026-12-01T00:00:00Z:\n  {url}\n"
    assert err.getvalue() == "  Next: plurnk-mcpd authorize -w team docs\n"
