"""Where the daemon is and which token opens it, from flags, environment and home. SPEC §cli, §security.

A token is never taken from the command line: process arguments are visible to every user of the machine.
"""

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.cli.failures import DaemonUnreachable, UsageFault
from app.core.json_value import JsonObject

START_IT = "Start it with 'plurnk-mcpd serve', or name another one with --url or --home."


@dataclass(frozen=True, slots=True)
class Target:
    """A daemon's address and what to say at its door."""

    url: str
    token: str | None
    """None where none was found: a daemon that is open needs none."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The flags that say which daemon is meant."""

    url: str | None = None
    home: Path | None = None
    token_file: Path | None = None


def find(options: TargetOptions, environment: Mapping[str, str]) -> Target:
    """Return the daemon that the flags name, else the one that runs on the home.

    Raises:
        DaemonUnreachable: no daemon announced itself there, or the one that did is gone.
        UsageFault: the token file cannot be read, or what it or the environment gives is no token.
    """
    home = options.home or default_home(environment)
    url = options.url or _announced_url(home)
    token = _token(options, home, environment)
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageFault(
            "The token has characters that no header carries.", "Look into PLURNK_TOKEN or --token-file."
        )
    return Target(url.rstrip("/"), token)


def default_home(environment: Mapping[str, str]) -> Path:
    """Return the home that a daemon with this environment uses."""
    if home := environment.get("PLURNK_HOME"):
        return Path(home).expanduser()
    state = environment.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "plurnk-mcpd"


def _announced_url(home: Path) -> str:
    _require_ours(home)
    announced = home / "daemon.json"
    try:
        document: JsonObject = json.loads(announced.read_bytes())
        url, pid = document["address"], document["pid"]
    except FileNotFoundError:
        raise DaemonUnreachable(f"No daemon runs on the home {home}.", START_IT) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DaemonUnreachable(f"{announced} cannot be read ({type(error).__name__}).", START_IT) from error
    if not isinstance(url, str) or not isinstance(pid, int):
        raise DaemonUnreachable(f"{announced} does not say where the daemon is.", START_IT)
    if not _is_held(home / "lock"):
        # A token must not be offered to whoever took over the port of a daemon that is gone.
        raise DaemonUnreachable(f"The daemon on the home {home} is not running any more.", START_IT)
    return url


def _require_ours(home: Path) -> None:
    """Return where nobody else can have announced a daemon there: it would be offered our token.

    Raises:
        DaemonUnreachable: another user owns the home or may write into it.
    """
    try:
        found = home.stat()
    except OSError:
        return  # Nothing is announced there.
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DaemonUnreachable(
            f"The home {home} belongs to another user, or others may write into it.",
            "Run the command as the daemon's user, or name the daemon with --url.",
        )


def _is_held(lock: Path) -> bool:
    """Return whether a daemon holds its home: the kernel's lock goes with it, whoever has its pid by now."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _token(options: TargetOptions, home: Path, environment: Mapping[str, str]) -> str | None:
    if options.token_file is not None:
        try:
            return options.token_file.read_text().strip() or None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageFault(
                f"The token file {options.token_file} cannot be read.",
                "Name a file that holds the token alone.",
            ) from error
    if given := environment.get("PLURNK_TOKEN"):
        return None if given == "none" else given
    try:
        return (home / "token").read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
