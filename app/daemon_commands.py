"""The daemon's own commands: serve, check, migrate, token, doctor. SPEC §cli, §defaults.

They read the environment and the home of this machine; the client commands live in ``cli``. What a command needs
of the daemon is imported inside it: the program is the client's too, and a client starts in a fifth of the time.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from app.cli.failures import UsageFault
from app.cli.findings import are_good, documents, show_findings
from app.cli.printable import printable
from app.cli.safe_console import console
from app.cli.screen import Screen
from app.cli.session import JsonOption, print_json
from app.configuration import FAULTS_REMEDY, Configuration, ConfigurationFaults, read
from app.core.json_value import Json, JsonObject
from app.core.problem import Problem
from app.home import Home, HomeRefused
from app.tokens import TokenRefused, Tokens, operator_token

USAGE = 2
"""Exit status of a faulty configuration."""

LOOK_OVER = "plurnk-mcpd doctor looks over everything that a daemon needs."
"""What helps against a refusal that says itself what to do."""


@dataclass(frozen=True, slots=True)
class _Command:
    """One invocation of one of these commands, and how it ends."""

    kind: str
    """The command's name; ``--json`` repeats it."""
    as_json: bool = False

    def configuration(self) -> Configuration:
        """Return the configuration; its warnings are told.

        Raises:
            Exit: it is faulty.
        """
        try:
            configuration = read(os.environ, Path.cwd())
        except ConfigurationFaults as faults:
            self._refuse_configuration(faults)
        for warning in configuration.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        return configuration

    def end(self, result: JsonObject, text: str) -> None:
        """Print the result, or the text that tells it to a person."""
        if self.as_json:
            print_json({"kind": self.kind, "ok": True, "result": result})
        else:
            sys.stdout.write(f"{text}\n")

    def refuse(self, what: str, remedy: str = LOOK_OVER) -> NoReturn:
        """Say why there is no result; the remedy is for programs, a person's text has it in itself.

        Raises:
            Exit: always.
        """
        if self.as_json:
            self._print_failure(UsageFault(printable(what), remedy).document())
        else:
            sys.stderr.write(f"{what}\n")
        raise typer.Exit(USAGE)

    def _refuse_configuration(self, faults: ConfigurationFaults) -> NoReturn:
        if self.as_json:
            lines: list[Json] = [printable(line) for line in faults.lines]
            fault = UsageFault("The configuration cannot be used.", FAULTS_REMEDY)
            self._print_failure({**fault.document(), "faults": lines})
        else:
            sys.stderr.writelines(f"{line}\n" for line in faults.lines)
        raise typer.Exit(USAGE)

    def _print_failure(self, document: JsonObject) -> None:
        print_json({"kind": self.kind, "ok": False, **document})


def register(program: typer.Typer) -> None:
    """Add the daemon's commands to the program."""
    program.command("serve")(_serve)
    program.command("check")(_check)
    program.command("migrate")(_migrate)
    program.command("token")(_token)
    program.command("doctor")(_doctor)


def _serve() -> None:
    """Run the daemon until SIGTERM or SIGINT."""
    import anyio  # noqa: PLC0415 see the module

    from app.serving import StartRefused, serve  # noqa: PLC0415 likewise

    command = _Command("serve")
    configuration = command.configuration()
    try:
        anyio.run(serve, configuration, backend_options={"use_uvloop": True})
    except StartRefused as refused:
        command.refuse(str(refused))


def _check(*, as_json: JsonOption = False) -> None:
    """Check the configuration and list every fault at once."""
    command = _Command("check", as_json=as_json)
    configuration = command.configuration()
    local = Path.cwd() / ".env"
    is_read = local.is_file()
    defaults = sorted(configuration.defaults)
    result: JsonObject = {
        "files": [printable(str(local))] if is_read else [],
        "defaults": [*defaults],
        "warnings": [printable(warning) for warning in configuration.warnings],
    }
    layers = f"{local} and the environment" if is_read else f"the environment, there is no {local}"
    names = ", ".join(defaults) or "none"
    command.end(result, f"The configuration is good.\nRead: {layers}.\nService defaults: {names}.")


def _migrate(*, as_json: JsonOption = False) -> None:
    """Bring the database to this release's schema, as serve does."""
    from app.store.migrate import bring_to_head  # noqa: PLC0415 see the module
    from app.store.refusal import StoreRefused, database_path  # noqa: PLC0415 likewise

    command = _Command("migrate", as_json=as_json)
    configuration = command.configuration()
    settings = configuration.settings
    try:
        with Home.open(settings.home, configuration.environment.values) as home:
            path = database_path(settings.database_url or home.database)
            bring_to_head(path)
    except (HomeRefused, StoreRefused) as refused:
        command.refuse(str(refused))
    command.end({"database": printable(str(path))}, f"The database {path} has this release's schema.")


def _token(
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Print a token that is valid for this workspace only."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the operator's token, or one for a single workspace."""
    command = _Command("token", as_json=as_json)
    configuration = command.configuration()
    home = Home.locate(configuration.settings.home, configuration.environment.values)
    try:
        home.ensure()
        operator = operator_token(configuration.settings.token, home)
        if operator is None:
            command.refuse("PLURNK_TOKEN=none: the daemon asks for no token.", "Ask it without one.")
        printed = operator if workspace is None else Tokens(operator).for_workspace(workspace)
    except (HomeRefused, TokenRefused) as refused:
        command.refuse(str(refused))
    except Problem as problem:
        command.refuse(problem.detail, "Name another workspace.")
    command.end({"token": printed}, printed)


def _doctor(
    *,
    workspace: Annotated[
        str,
        typer.Option("--workspace", "-w", metavar="NAME", help="Whose servers, where a daemon runs."),
    ] = "default",
    as_json: JsonOption = False,
) -> None:
    """Check everything that a daemon needs, and say what to fix.

    Home, database, token, port, servers; nothing is made. Where no daemon runs, each service default is connected to
    once. The exit status is 2 where something keeps the daemon or a server from working.
    """
    from app import logs  # noqa: PLC0415 see the module
    from app.doctor import examined  # noqa: PLC0415 likewise
    from app.settings import Settings  # noqa: PLC0415 likewise

    # What connecting to the defaults would log is found and told as findings.
    logs.configure(Settings.from_environment({"PLURNK_LOG_LEVEL": "error"}), str)
    findings = examined(os.environ, Path.cwd(), workspace)
    if as_json:
        result: JsonObject = {"findings": documents(findings)}
        print_json({"kind": "doctor", "ok": are_good(findings), "result": result})
    else:
        show_findings(Screen(console(), console(stderr=True)), findings)
    raise typer.Exit(0 if are_good(findings) else USAGE)
