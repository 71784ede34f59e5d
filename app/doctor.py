"""Looks over everything that a daemon on this machine needs, makes nothing, and says what it found. SPEC §cli.

Each check is a function that returns findings; whether servers can be reached is ``reachability``'s. No finding
holds a value of the environment, a token or an expanded reference.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from app import reachability
from app.cli.client import DaemonClient
from app.cli.failures import DaemonUnreachable, UsageFault
from app.cli.findings import Finding, Verdict
from app.cli.target import Target, TargetOptions, find
from app.configuration import FAULTS_REMEDY, Configuration, ConfigurationFaults, read
from app.home import Daemon, Home, HomeRefused
from app.serving import StartRefused, bound
from app.store.examination import AtRevision, Empty, examine
from app.store.migrate import require_known
from app.store.refusal import StoreRefused, database_path
from app.store.schema import HEAD
from app.tokens import OPEN, TokenRefused, operator_token


def examined(process: Mapping[str, str], directory: Path, workspace: str) -> list[Finding]:
    """Return everything that there is to say, in the order in which a start meets it."""
    try:
        configuration = read(process, directory)
    except ConfigurationFaults as found:
        return [Finding("configuration", Verdict.FAULT, line, FAULTS_REMEDY) for line in found.lines]
    values = configuration.environment.values
    try:
        home = Home.locate(configuration.settings.home, values)
        target = _target(home, values)
        running = home.running() if target else None
    except (HomeRefused, UsageFault) as refused:
        return [*_configuration(configuration, directory), Finding("home", Verdict.FAULT, str(refused))]
    findings = [
        *_configuration(configuration, directory),
        *_home(home, running),
        *_explained("database", lambda: _database(configuration, home)),
        *_explained("token", lambda: _token(configuration, home)),
        *_explained("port", lambda: _port(configuration, running)),
    ]
    if target is None:
        return findings + reachability.of_defaults(configuration)
    with DaemonClient(target) as client:
        return findings + reachability.of_daemon(client, workspace)


def _target(home: Home, values: Mapping[str, str]) -> Target | None:
    """Return where the daemon of this home is; None where none runs.

    Raises:
        UsageFault: its token cannot be used.
    """
    try:
        return find(TargetOptions(home=home.path), values)
    except DaemonUnreachable:
        return None


def _configuration(configuration: Configuration, directory: Path) -> Iterator[Finding]:
    local = directory / ".env"
    layers = f"{local} and the environment" if local.is_file() else "the environment"
    names = ", ".join(sorted(configuration.defaults)) or "none"
    yield Finding("configuration", Verdict.GOOD, f"read from {layers}; service defaults: {names}")
    for warning in configuration.warnings:
        yield Finding("configuration", Verdict.WARNING, warning, "Correct the name, or remove it.")


def _home(home: Home, running: Daemon | None) -> Iterator[Finding]:
    path, fix = home.path, "Make it this user's alone, or name another in PLURNK_HOME."
    try:
        found = path.lstat()
    except FileNotFoundError:
        yield _home_to_be(path)
        return
    except OSError as error:
        yield Finding("home", Verdict.FAULT, f"{path} cannot be looked at ({error.strerror})", fix)
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        yield Finding("home", Verdict.FAULT, f"{path} is not a directory of this user", fix)
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", Verdict.FAULT, f"{path} cannot be written", fix)
    elif stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
        yield Finding("home", Verdict.WARNING, f"{path} is open to other users", f"chmod 700 {path}")
    else:
        serves = f"the daemon with pid {running.pid} runs on it" if running else "no daemon runs on it"
        yield Finding("home", Verdict.GOOD, f"{path}; {serves}")


def _home_to_be(path: Path) -> Finding:
    parent = next(each for each in path.parents if each.exists())
    if os.access(parent, os.W_OK | os.X_OK):
        return Finding("home", Verdict.GOOD, f"{path} will be made at the first start")
    fix = "Give this user a directory there, or name another in PLURNK_HOME."
    return Finding("home", Verdict.FAULT, f"{path} cannot be made: {parent} cannot be written", fix)


def _database(configuration: Configuration, home: Home) -> Finding:
    path = database_path(configuration.settings.database_url or home.database)
    found = examine(path)
    require_known(path, found)
    match found:
        case Empty():
            return Finding("database", Verdict.GOOD, f"{path} will be made at the next start")
        case AtRevision(revision) if revision == HEAD:
            return Finding("database", Verdict.GOOD, f"{path} is sound and has this release's schema")
        case AtRevision():
            what = f"{path} is sound and from an older release; the next start migrates it"
            return Finding("database", Verdict.WARNING, what, "Back it up, then: plurnk-mcpd migrate")


def _token(configuration: Configuration, home: Home) -> Finding:
    setting = configuration.settings.token
    if setting == OPEN:
        what = "PLURNK_TOKEN=none: whoever reaches the port is the operator"
        return Finding("token", Verdict.WARNING, what, "Unset PLURNK_TOKEN, and one is generated.")
    if not setting and not (home.path.is_dir() and home.token.exists()):
        return Finding("token", Verdict.GOOD, "will be generated at the first start")
    operator_token(setting, home)
    return Finding("token", Verdict.GOOD, "from PLURNK_TOKEN" if setting else f"from {home.token}")


def _port(configuration: Configuration, running: Daemon | None) -> Finding:
    settings = configuration.settings
    if running is not None:
        return Finding("port", Verdict.GOOD, f"the daemon listens on {running.address}")
    with bound(settings):
        return Finding("port", Verdict.GOOD, f"{settings.host} port {settings.port or '(any)'} is free")


def _explained(subject: str, check: Callable[[], Finding]) -> list[Finding]:
    """Return what a check found; a refusal says what to do by itself."""
    try:
        return [check()]
    except (HomeRefused, StartRefused, StoreRefused, TokenRefused) as refused:
        return [Finding(subject, Verdict.FAULT, str(refused))]
