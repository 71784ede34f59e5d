"""How a command ends: the channels it uses and the status it gives, whatever happens. SPEC §cli."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from app.cli.exit_status import ExitStatus
from app.cli.failures import UsageFault
from app.cli.session import Session, open_session, perform


def session_of(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> Session:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    context.obj = {"PLURNK_HOME": "/nonexistent"}
    return open_session(context, "workspace.mcp.list", as_json=as_json)


def ended(work: Any, session: Session) -> int:
    with pytest.raises(typer.Exit) as ending:
        perform(session, work)
    return ending.value.exit_code


@pytest.mark.spec("cli")
def test_a_failure_goes_to_standard_error_and_to_json_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work() -> None:
        raise UsageFault("What happened.", "What to do.")

    assert ended(work, session_of(capsys, as_json=False)) == ExitStatus.USAGE
    assert capsys.readouterr() == ("", "✗ What happened.\n  Next: What to do.\n")
    assert ended(work, session_of(capsys, as_json=True)) == ExitStatus.USAGE
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "kind": "workspace.mcp.list",
        "ok": False,
        "error": {"detail": "What happened.", "next": "What to do."},
    }


@pytest.mark.spec("cli")
def test_ctrl_c_is_said_and_reported_as_shells_do(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    assert ended(work, session_of(capsys, as_json=False)) == 130
    assert capsys.readouterr() == ("", "Interrupted.\n")


@pytest.mark.parametrize(
    "options, same",
    [
        ({}, ""),
        ({"workspace": "team"}, " -w team"),
        ({"url": "http://x", "home": Path("/a b")}, " --url http://x --home '/a b'"),
    ],
)
def test_the_screen_knows_which_daemon_and_workspace_are_meant(options: dict[str, Any], same: str) -> None:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    assert open_session(context, "workspace.mcp.list", **options).screen.same == same


def test_the_environment_that_the_program_merged_is_the_one_that_is_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLURNK_HOME", "/elsewhere")
    assert session_of(capsys, as_json=False).environment == {"PLURNK_HOME": "/nonexistent"}


def test_a_result_is_printed_as_it_came_where_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    session = session_of(capsys, as_json=True)
    assert ended(lambda: session.end({"text": "é\x1b"}, lambda: None), session) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out)["result"] == {"text": "é\x1b"}
