"""``authorize`` where no sign-in is needed or known; the whole way is a journey. SPEC §cli."""

import io
import json
from collections.abc import Callable
from subprocess import CompletedProcess

import anyio
import pytest
from rich.console import Console

from app.cli.failures import SignInOpen
from app.cli.screen import Screen
from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition

Run = Callable[..., CompletedProcess[str]]


@pytest.mark.spec("cli", "oauth")
def test_a_server_that_asks_for_no_sign_in_is_connected_anew(daemon: Daemon, plurnk: Run) -> None:
    anyio.run(daemon.attach, "default", scripted_definition("plain"))
    done = plurnk("authorize", "plain")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ needs no sign-in; reconnected plain (stdio, workspace default)\n")
    document = json.loads(plurnk("authorize", "plain", "--no-browser", "--json").stdout)
    assert (document["kind"], document["ok"], document["result"]["status"]) == (
        "workspace.mcp.oauth.complete",
        True,
        200,
    )


@pytest.mark.spec("cli", "problems")
def test_a_server_that_is_not_there_is_a_problem(plurnk: Run) -> None:
    done = plurnk("authorize", "absent")
    assert (done.returncode, done.stdout) == (3, "")
    assert "server-not-found" in done.stderr


@pytest.mark.spec("cli", "oauth")
def test_a_sign_in_that_nobody_finished_says_how_it_can_be() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(Console(file=out, width=60), Console(file=err, width=60), " -w team")
    url = "https://as.example/authorize?" + "x" * 80
    failure = SignInOpen("team", "docs", {"url": url, "expiresAt": "2026-12-01T00:00:00Z"})
    screen.show_failure(failure)
    assert (failure.exit_status, out.getvalue()) == (6, "")
    assert err.getvalue().splitlines() == [
        "docs waits for a sign-in until 2026-12-01T00:00:00Z:",
        f"  {url}",
        "  Next: plurnk-mcpd authorize -w team docs",
        (
            "  Or POST /v1/workspaces/team/servers/docs/oauth/complete"
            ' {"callbackUrl": "THE URL THAT THE BROWSER WAS SENT TO"}'
        ),
    ]
    assert failure.document() == {
        "name": "docs",
        "authorization": {"url": url, "expiresAt": "2026-12-01T00:00:00Z"},
    }
