"""client_command.py: a command has its own words, then the shared options, and ends as its work does."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner, Result

from app.cli.client_command import client_command
from app.cli.exit_status import ExitStatus
from app.cli.failures import UsageFault
from app.cli.session import Session

pytestmark = pytest.mark.spec("cli")

SHARED = ["workspace", "as_json", "url", "home", "token_file"]


def run(work: Any, *words: str) -> Result:
    """Run a program of this one command."""
    program = typer.Typer()
    program.command()(client_command("some.kind")(work))
    return CliRunner().invoke(program, words)


def test_the_words_of_the_work_come_before_the_shared_options() -> None:
    def work(session: Session, name: str, *, count: int = 1) -> None:
        """Do it."""

    program = typer.Typer()
    program.command()(client_command("some.kind")(work))
    command = typer.main.get_command(program)

    assert [each.name for each in command.params][:7] == ["name", "count", *SHARED]
    assert command.help == "Do it."


def test_the_session_has_the_kind_and_what_was_said() -> None:
    seen: list[Session] = []

    def work(session: Session, name: str) -> None:
        seen.append(session)
        session.end({"name": name}, lambda: None)

    ended = run(work, "shelf", "-w", "other", "--json", "--url", "http://127.0.0.1:1")

    assert ended.exit_code == 0
    [session] = seen
    assert (session.kind, session.workspace, session.as_json) == ("some.kind", "other", True)
    assert session.target.url == "http://127.0.0.1:1"


def test_an_option_of_the_works_own_takes_the_place_of_the_shared_one() -> None:
    seen: list[tuple[str | None, str]] = []

    def work(
        session: Session,
        workspace: Annotated[str | None, typer.Option("--workspace", "-w")] = None,
    ) -> None:
        seen.append((workspace, session.workspace))

    assert [run(work).exit_code, run(work, "-w", "w").exit_code] == [0, 0]
    assert seen == [(None, "default"), ("w", "default")]


def test_a_failure_of_the_work_is_the_commands() -> None:
    def work(session: Session) -> None:
        raise UsageFault("It is wrong.", "Do it right.")

    assert run(work).exit_code == ExitStatus.USAGE
