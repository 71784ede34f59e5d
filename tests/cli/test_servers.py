"""``list`` against a running daemon, and what every command shares. SPEC §cli."""

import json
import sys
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.peers.programs import SCRIPTED

Run = Callable[..., CompletedProcess[str]]
PEER = (sys.executable, str(SCRIPTED), "stdio", "good")


def document(done: CompletedProcess[str]) -> dict[str, Any]:
    [line] = done.stdout.splitlines()
    return json.loads(line)


@pytest.mark.spec("cli")
def test_one_line_attaches_the_list_shows_and_one_line_detaches(plurnk_process: Run) -> None:
    plurnk = plurnk_process
    attached = plurnk("attach", "time", "-w", "one", "--read", "echo,process", "--", *PEER)
    assert (attached.returncode, attached.stderr) == (0, "")
    assert "attached time (stdio, workspace one)" in attached.stdout
    assert "echo, variable, header" in attached.stdout
    listed = plurnk("list", "-w", "one")
    assert (listed.returncode, listed.stderr) == (0, "")
    rows = [line.split() for line in listed.stdout.splitlines() if line.strip()]
    assert rows[2] == ["time", "connected", "workspace", "stdio", "6", "0", "0", "scripted", "1.0"]
    detached = plurnk("detach", "time", "-w", "one")
    assert (detached.returncode, detached.stdout) == (0, "✓ detached time (workspace one)\n")
    assert "Nothing is attached" in plurnk("list", "-w", "one").stdout


@pytest.mark.spec("cli")
def test_json_is_one_object_of_one_shape(plurnk: Run) -> None:
    attached = plurnk("attach", "time", "-w", "two", "--json", "--", *PEER)
    assert attached.returncode == 0
    assert {key: value for key, value in document(attached).items() if key != "result"} == {
        "kind": "workspace.mcp.attach",
        "ok": True,
    }
    assert document(attached)["result"]["status"] == 201
    again = plurnk("attach", "time", "-w", "two", "--json", "--", *PEER)
    assert (again.returncode, again.stderr) == (3, "")
    assert set(document(again)) == {"kind", "ok", "problem"}
    assert (document(again)["ok"], document(again)["problem"]["code"]) == (False, "server-exists")
    listed = document(plurnk("list", "-w", "two", "--json"))
    assert [server["name"] for server in listed["result"]["servers"]] == ["time"]


@pytest.mark.spec("cli", "problems")
@pytest.mark.parametrize(
    "words, status, says",
    [
        (("attach", "x", "-w", "five", "--", sys.executable, str(SCRIPTED), "stdio", "old"), 4, "2026-07-28"),
        (("attach", "x", "-w", "five", "--", "/nonexistent"), 4, "server-unavailable"),
        (("attach", "X!", "-w", "five", "--", "true"), 3, "/name: "),
        (
            ("attach", "x", "-w", "five", "--env", "ABSENT_ONE", "--", *PEER),
            3,
            "Set ABSENT_ONE in the daemon's",
        ),
        (("detach", "absent", "-w", "five"), 3, "Next: See what is attached: plurnk-mcpd list"),
        (("list", "-w", ".bad"), 3, "workspace-invalid"),
    ],
    ids=["revision", "missing", "name", "reference", "absent", "workspace"],
)
def test_a_problem_says_what_happened_and_what_to_do(
    plurnk: Run, words: tuple[str, ...], status: int, says: str
) -> None:
    done = plurnk(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spec("cli", "security")
@pytest.mark.parametrize(
    "words",
    [
        ("detach",),
        ("nothing",),
        ("list", "--token-file", "/nonexistent"),
    ],
)
def test_a_wrong_command_line_exits_2(plurnk: Run, words: tuple[str, ...]) -> None:
    done = plurnk(*words)
    assert done.returncode == 2
    assert done.stderr != ""
    assert "Traceback" not in done.stderr


@pytest.mark.spec("cli", "security")
def test_a_wrong_token_is_a_problem_with_the_way_out(plurnk: Run) -> None:
    done = plurnk("list", PLURNK_TOKEN="wrong-token-of-nobody")
    assert done.returncode == 3
    assert "unauthenticated" in done.stderr
    assert "plurnk-mcpd token" in done.stderr
    assert "wrong-token" not in done.stderr


@pytest.mark.spec("cli")
@pytest.mark.parametrize("words", [("--home", "/nonexistent"), ("--url", "http://127.0.0.1:1")])
def test_no_daemon_exits_5(plurnk: Run, words: tuple[str, ...]) -> None:
    done = plurnk("list", *words)
    assert (done.returncode, done.stdout) == (5, "")
    assert "plurnk-mcpd serve" in done.stderr
    as_json = document(plurnk("list", *words, "--json"))
    assert (as_json["ok"], set(as_json["error"])) == (False, {"detail", "next"})
