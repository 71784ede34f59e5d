"""Who may start which processes. SPEC §security.

Looks executables up in the file system; starts nothing. What is started, and how, is ``child_environment``'s.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from app.connections.child_environment import find_executable
from app.core.definitions import StdioDefinition
from app.core.problems import StdioRefused
from app.ports import Source
from app.settings import Settings

LOADER_NAMES: Final = frozenset({"PATH", "NODE_OPTIONS"})
LOADER_PREFIXES: Final = ("LD_", "DYLD_", "PYTHON")
"""Variables that make an allowed executable run something else."""


def require_startable(
    definition: StdioDefinition,
    source: Source,
    settings: Settings,
    *,
    environment: Mapping[str, str],
    cwd: str | None,
) -> None:
    """Return where the operator's settings let the definition's process be started in the expanded ``cwd``.

    Raises:
        StdioRefused: they do not; names the setting.
    """
    server = definition.name
    policy = settings.stdio_policy
    if policy == "off" or (policy == "defaults" and source != "service"):
        reason = "this daemon starts no process" + (
            "" if policy == "off" else " but those of its own defaults"
        )
        raise StdioRefused(server=server, setting="PLURNK_STDIO_POLICY", reason=reason)
    if settings.stdio_commands is None:
        return
    for name in definition.env:
        if name in LOADER_NAMES or name.startswith(LOADER_PREFIXES):
            reason = f"'{name}' in its env could make an allowed executable run another"
            raise StdioRefused(server=server, setting="PLURNK_STDIO_COMMANDS", reason=reason)
    directory = Path.cwd() / (cwd or "")
    path = environment.get("PATH", os.defpath)
    if not _is_listed(definition.command, settings.stdio_commands, path=path, directory=directory):
        reason = "its command is not one of the allowed executables"
        raise StdioRefused(server=server, setting="PLURNK_STDIO_COMMANDS", reason=reason)


def _is_listed(command: str, allowed: Sequence[str], *, path: str, directory: Path) -> bool:
    """Return whether the command is, as a real path, one of the allowed executables."""
    wanted = _real_path(command, path, directory)
    return wanted is not None and any(wanted == _real_path(each, path, Path.cwd()) for each in allowed)


def _real_path(command: str, path: str, directory: Path) -> Path | None:
    """Return the file behind every link that would be executed for a command, or None where there is none."""
    try:
        found = find_executable(command, path=path, directory=directory)
        return found.resolve(strict=True) if found is not None else None
    except (OSError, RuntimeError, ValueError):
        return None
