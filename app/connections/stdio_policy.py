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

LOADER_NAMES: Final = frozenset(
    {
        *("PATH", "HOME", "ENV", "BASH_ENV", "EDITOR", "VISUAL", "PAGER", "BROWSER"),
        *("GCONV_PATH", "GLIBC_TUNABLES", "CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
        *("NODE_OPTIONS", "NODE_PATH", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"),
        *("PHPRC", "PHP_INI_SCAN_DIR"),
    }
)  # fmt: skip
LOADER_PREFIXES: Final = (
    *("LD_", "DYLD_", "PYTHON", "BASH_FUNC_", "PERL", "RUBY", "GEM_", "BUNDLE_", "LUA_", "XDG_"),
    *("NPM_CONFIG_", "UV_", "PIP_", "PIPX_", "DENO_", "BUN_", "DOTNET_", "CORECLR_", "COR_"),
    *("GIT_ASKPASS", "GIT_CONFIG", "GIT_EDITOR", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER"),
    *("GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_TEMPLATE_DIR"),
)
"""Variables, in any case, that make an allowed executable run something else: through its loader, its interpreter's
start-up files, or the settings of a package manager."""


def startable_command(
    definition: StdioDefinition,
    source: Source,
    settings: Settings,
    *,
    environment: Mapping[str, str],
    cwd: str | None,
) -> str:
    """Return what to start where the operator's settings let the definition's process be started.

    Where executables are listed, that is the listed file and not the definition's way to it: what a program does may
    hang on the name it is started by (one file is ``ls`` and ``sh`` on some systems, an interpreter looks for its
    libraries beside the link), and a link could lead elsewhere by the time it is followed. ``cwd`` is expanded.

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
        return definition.command
    for name in definition.env:
        if name.upper() in LOADER_NAMES or name.upper().startswith(LOADER_PREFIXES):
            reason = f"'{name}' in its env could make an allowed executable run another"
            raise StdioRefused(server=server, setting="PLURNK_STDIO_COMMANDS", reason=reason)
    directory = Path.cwd() / (cwd or "")
    path = environment.get("PATH", os.defpath)
    listed = _listed_file(definition.command, settings.stdio_commands, path=path, directory=directory)
    if listed is None:
        reason = "its command is not one of the allowed executables"
        raise StdioRefused(server=server, setting="PLURNK_STDIO_COMMANDS", reason=reason)
    return str(listed)


def _listed_file(command: str, allowed: Sequence[str], *, path: str, directory: Path) -> Path | None:
    """Return the listed file that the command is as a real path: the one of its own name where several are."""
    wanted = _found(command, path, directory)
    if wanted is None:
        return None
    listed = [file for each in allowed if (file := _found(each, path, Path.cwd())) is not None]
    same = [file for file in listed if file.resolve() == wanted.resolve()]
    return next((file for file in same if file == wanted), same[0] if same else None)


def _found(command: str, path: str, directory: Path) -> Path | None:
    """Return the file that would be executed for a command, links unresolved, or None where there is none."""
    try:
        found = find_executable(command, path=path, directory=directory)
        return Path(os.path.normpath(found)) if found is not None and found.resolve(strict=True) else None
    except (OSError, RuntimeError, ValueError):
        return None
