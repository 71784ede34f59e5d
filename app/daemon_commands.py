"""The daemon's own commands: serve, check, migrate, token, doctor. SPEC §cli, §defaults.

They read the environment and the home of this machine; the client commands live in ``cli``. What a command needs
of the daemon is imported inside it: the program is the client's too, and a client starts in a fifth of the time.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from app.cli.findings import are_good, documents, show_findings
from app.cli.screen import Screen
from app.cli.session import JsonOption, print_json
from app.configuration import Configuration, ConfigurationFaults, read
from app.core.json_value import JsonObject
from app.core.problem import Problem
from app.home import Home, HomeRefused
from app.tokens import TokenRefused, Tokens, operator_token

USAGE = 2
"""Exit status of a faulty configuration."""


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

    configuration = _configuration()
    try:
        anyio.run(serve, configuration, backend_options={"use_uvloop": True})
    except StartRefused as refused:
        _refuse(str(refused))


def _check() -> None:
    """Check the configuration and list every fault at once."""
    configuration = _configuration()
    local = Path.cwd() / ".env"
    layers = f"{local} and the environment" if local.is_file() else f"the environment, there is no {local}"
    names = ", ".join(sorted(configuration.defaults)) or "none"
    sys.stdout.write(f"The configuration is good.\nRead: {layers}.\nService defaults: {names}.\n")


def _migrate() -> None:
    """Bring the database to this release's schema, as serve does."""
    from app.store.migrate import bring_to_head  # noqa: PLC0415 see the module
    from app.store.refusal import StoreRefused, database_path  # noqa: PLC0415 likewise

    configuration = _configuration()
    settings = configuration.settings
    try:
        with Home.open(settings.home, configuration.environment.values) as home:
            path = database_path(settings.database_url or home.database)
            bring_to_head(path)
    except (HomeRefused, StoreRefused) as refused:
        _refuse(str(refused))
    sys.stdout.write(f"The database {path} has this release's schema.\n")


def _token(
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Print a token that is valid for this workspace only."),
    ] = None,
) -> None:
    """Print the operator's token, or one for a single workspace."""
    configuration = _configuration()
    home = Home.locate(configuration.settings.home, configuration.environment.values)
    try:
        home.ensure()
        operator = operator_token(configuration.settings.token, home)
        if operator is None:
            _refuse("PLURNK_TOKEN=none: the daemon asks for no token.")
        printed = operator if workspace is None else Tokens(operator).for_workspace(workspace)
    except (HomeRefused, TokenRefused) as refused:
        _refuse(str(refused))
    except Problem as problem:
        _refuse(problem.detail)
    sys.stdout.write(f"{printed}\n")


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
        show_findings(Screen(Console(highlight=False), Console(stderr=True, highlight=False)), findings)
    raise typer.Exit(0 if are_good(findings) else USAGE)


def _configuration() -> Configuration:
    try:
        configuration = read(os.environ, Path.cwd())
    except ConfigurationFaults as faults:
        _refuse(*faults.lines)
    for warning in configuration.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    return configuration


def _refuse(*lines: str) -> NoReturn:
    for line in lines:
        sys.stderr.write(f"{line}\n")
    raise typer.Exit(USAGE)
