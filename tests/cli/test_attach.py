"""``attach`` and ``replace``: a definition from one line, a file or standard input. SPEC §cli."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.peers.programs import SCRIPTED, scripted_definition

Run = Callable[..., CompletedProcess[str]]
PEER = (sys.executable, str(SCRIPTED), "stdio", "good")


@pytest.mark.spec("cli")
def test_a_definition_comes_from_standard_input_and_the_next_one_from_a_file(
    plurnk: Run, tmp_path: Path
) -> None:
    definition = scripted_definition("fed", env={"KEY": "${GIVEN_SECRET}"}, read=["variable"])
    assert plurnk("attach", "-w", "three", "--file", "-", stdin=json.dumps(definition)).returncode == 0
    called = plurnk("call", "fed", "variable", "name=KEY", "-w", "three")
    assert (called.returncode, called.stdout) == (0, "canary-given-secret\n")
    file = tmp_path / "fed.json"
    file.write_text(json.dumps({**definition, "env": {"KEY": "plain"}}))
    replaced = plurnk("replace", "-w", "three", "--file", str(file))
    assert (replaced.returncode, replaced.stdout.splitlines()[0]) == (
        0,
        "✓ replaced fed (stdio, workspace three)",
    )
    assert plurnk("call", "fed", "variable", "name=KEY", "-w", "three").stdout == "plain\n"


@pytest.mark.spec("cli", "references")
def test_a_variable_is_passed_on_by_its_name(plurnk: Run) -> None:
    words = ("attach", "named", "-w", "four", "--env", "GIVEN_SECRET", "--read", "variable", "--", *PEER)
    assert plurnk(*words).returncode == 0
    called = plurnk("call", "named", "variable", "name=GIVEN_SECRET", "-w", "four")
    assert called.stdout == "canary-given-secret\n"


@pytest.mark.spec("cli", "security")
@pytest.mark.parametrize("command", ["attach", "replace"])
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("x",),
        ("x", "https://x", "--bearer", "ghp_canary-literal-token"),
        ("--file", "/nonexistent"),
        ("--file", "-"),
    ],
)
def test_words_that_define_nothing_exit_2(plurnk: Run, command: str, words: tuple[str, ...]) -> None:
    done = plurnk(command, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Next: " in done.stderr
    assert "canary-literal-token" not in done.stderr
