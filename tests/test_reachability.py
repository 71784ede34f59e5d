"""Whether servers can be reached, found out without a daemon. SPEC §cli, §revision."""

import json
import sys
from pathlib import Path

import pytest

from app.cli.findings import Finding, Verdict
from app.configuration import read
from app.core.json_value import JsonObject
from app.reachability import _told, of_defaults
from tests.support.peers.programs import SCRIPTED

pytestmark = pytest.mark.spec("cli", "revision")


def default(name: str, way: str) -> dict[str, str]:
    arguments = json.dumps([str(SCRIPTED), "stdio", way])
    return {f"PLURNK_MCP_{name}": sys.executable, f"PLURNK_MCP_{name}_ARGS": arguments}


def test_every_default_is_connected_to_once_and_left_again(tmp_path: Path) -> None:
    environment = {
        **default("good", "good"),
        **default("old", "old"),
        "PLURNK_MCP_gone": "http://127.0.0.1:1/mcp",
        "PLURNK_MCP_absent": "/nonexistent",
    }
    absent, gone, good, old = of_defaults(read(environment, tmp_path))
    assert good == Finding("server good", Verdict.GOOD, "connected, speaks 2026-07-28")
    assert [each.verdict for each in (absent, gone, old)] == [Verdict.FAULT] * 3
    assert [each.subject for each in (absent, gone, old)] == ["server absent", "server gone", "server old"]
    assert "2026-07-28" in old.what


def test_without_defaults_there_is_nothing_to_reach(tmp_path: Path) -> None:
    assert of_defaults(read({}, tmp_path)) == []


@pytest.mark.parametrize(
    ("server", "verdict", "what", "fix"),
    [
        (
            {"state": "connected", "protocolVersion": "2026-07-28"},
            Verdict.GOOD,
            "connected, speaks 2026-07-28",
            None,
        ),
        (
            {"state": "authorization-required"},
            Verdict.WARNING,
            "asks for a sign-in",
            "plurnk-mcpd authorize -w w p",
        ),
        ({"state": "unavailable"}, Verdict.FAULT, "it is not connected", "plurnk-mcpd reconnect -w w p"),
    ],
)
def test_what_the_daemon_tells_of_a_server_is_a_finding_with_its_command(
    server: JsonObject, verdict: Verdict, what: str, fix: str | None
) -> None:
    assert _told({"name": "p", **server}, " -w w") == Finding("server p", verdict, what, fix)
