"""``call`` against a running daemon: what it prints, asks and leaves open. SPEC §cli, §calls."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import ELICITING_SERVER, stdio_definition

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def attached(daemon: Daemon) -> str:
    """The name of an attached server whose tool ``echo`` proposes and whose tool ``count`` reads."""
    anyio.run(daemon.attach, "default", stdio_definition("notes", read=["count", "fail"]))
    return "notes"


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "words, status, out",
    [
        (("echo", "text=grüße", "--yes"), 0, "grüße\n"),
        (("echo", '{"text": "from JSON"}', "-y"), 0, "from JSON\n"),
        (("count", "steps=2"), 0, "counted to 2\n"),
        (("fail", "message=no way"), 1, "Error executing tool fail: no way\n"),
    ],
    ids=["pair", "JSON", "progress", "isError"],
)
def test_a_call_prints_what_the_tool_answers(
    plurnk: Run, attached: str, words: tuple[str, ...], status: int, out: str
) -> None:
    done = plurnk("call", attached, *words)
    assert (done.returncode, done.stdout) == (status, out)


@pytest.mark.spec("cli", "calls")
def test_arguments_come_from_standard_input_and_the_result_goes_out_as_json(
    plurnk: Run, attached: str
) -> None:
    done = plurnk("call", attached, "echo", "-", "--yes", "--json", stdin='{"text": "piped"}')
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"], document["kind"]) == (0, True, "workspace.mcp.call")
    assert document["result"]["content"] == [{"type": "text", "text": "piped"}]


@pytest.mark.spec("cli", "calls")
def test_without_anybody_a_proposal_stays_open_and_can_be_answered_elsewhere(
    plurnk: Run, attached: str
) -> None:
    done = plurnk("call", attached, "echo", "text=x")
    assert (done.returncode, done.stdout) == (6, "")
    as_json = plurnk("call", attached, "echo", "text=x", "--json")
    document = json.loads(as_json.stdout)
    assert (as_json.returncode, document["ok"]) == (6, False)
    assert document["operation"] in str(document["interrupts"])
    shown = re.search(r"Operation (\S+) waits", done.stderr)
    assert shown is not None
    assert shown.group(1) != document["operation"]
    assert re.search(r"POST /v1/workspaces/default/interactions/\S+", done.stderr)


@pytest.mark.spec("cli", "problems")
@pytest.mark.parametrize(
    "words, status, code",
    [
        (("absent", "echo"), 3, "server-not-found"),
        (("notes", "absent"), 3, "tool-not-found"),
        (("notes", "count", "steps=many"), 3, "arguments-invalid"),
    ],
)
def test_a_call_that_cannot_be_made_is_a_problem(
    plurnk: Run, attached: str, words: tuple[str, ...], status: int, code: str
) -> None:
    done = plurnk("call", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert code in done.stderr


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "keys, status, shows", [("y\n", 0, "hello"), ("\n", 1, "rejected"), ("\x04", 6, "waits")]
)
def test_a_person_at_a_terminal_is_asked(
    attached: str, terminal_of: Callable[..., Any], keys: str, status: int, shows: str
) -> None:
    with terminal_of("call", attached, "echo", "text=hello") as person:
        person.wait_for("Run it? [y/N]")
        assert '"text": "hello"' in person.screen
        person.type(keys)
        assert person.exit_status() == status
        assert shows in person.screen.partition("[y/N]")[2]


@pytest.mark.spec("cli", "calls")
def test_a_running_call_shows_a_bar_and_ctrl_c_cancels_it(
    daemon: Daemon, attached: str, terminal_of: Callable[..., Any], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with terminal_of("call", attached, "hold", f"gate={gate}", "--yes") as person:
        until_file(gate.with_suffix(".entered"))
        person.type("\x03")
        assert person.exit_status() == 130
    until_file(gate.with_suffix(".cancelled"))


def until_file(path: Path) -> None:
    """Return once another process has made the file."""
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize("flags", [(), ("--yes",), ("--json",)])
def test_what_a_server_requires_is_told_and_left_open(
    daemon: Daemon, plurnk: Run, flags: tuple[str, ...]
) -> None:
    workspace = f"asking{len(flags)}{'-'.join(flags)[:4]}"
    definition = stdio_definition("shop", ELICITING_SERVER, "stdio", "sdk", read=["pay"])
    anyio.run(daemon.attach, workspace, definition)
    done = plurnk("call", "-w", workspace, "shop", "pay", *flags)
    assert done.returncode == 6
    told = done.stdout if "--json" in flags else done.stderr
    assert "https://pay.example/checkout?order=1" in told
    assert "A receipt?" in told
    assert done.stdout == "" or "--json" in flags


@pytest.fixture(scope="module")
def asking(daemon: Daemon) -> str:
    """The workspace of a server that asks in the middle of a call."""
    definition = stdio_definition("shop", ELICITING_SERVER, "stdio", "sdk", read=["pay", "deploy"])
    anyio.run(daemon.attach, "shopping", definition)
    return "shopping"


@pytest.mark.spec("cli", "calls")
def test_a_person_fills_in_the_forms_of_every_round(asking: str, terminal_of: Callable[..., Any]) -> None:
    with terminal_of("call", "-w", asking, "shop", "deploy", "service=web") as person:
        person.wait_for("Which environment should be deployed?")
        person.wait_for("(1-2 or the value) > ")
        person.type("production\n")
        person.wait_for("✗ env: it must be 1-2 or the value")
        person.type("2\n")
        person.wait_for("Send it?")
        person.type("y\n")
        person.wait_for("Really?")
        person.wait_for("(y or n) > ")
        person.type("y\n")
        person.type("y\n")
        assert person.exit_status() == 0
        assert "deployed web to prod" in person.screen


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "first, second, says",
    [("y", "/decline", "page accept, receipt decline"), ("d", "/cancel", "page decline, receipt cancel")],
)
def test_a_person_consents_to_a_page_and_refuses_a_form(
    asking: str, terminal_of: Callable[..., Any], first: str, second: str, says: str
) -> None:
    with terminal_of("call", "-w", asking, "shop", "pay") as person:
        person.wait_for("Host: pay.example")
        person.wait_for("Open this page?")
        person.type(f"{first}\n")
        person.wait_for("A receipt?")
        person.wait_for("(y or n) > ")
        person.type(f"{second}\n")
        assert person.exit_status() == 0
        assert says in person.screen
