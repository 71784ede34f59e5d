"""What exactly is started: a child's environment, executable, directory. SPEC §connection, §definition.

Looks at the file system and starts nothing. Every cause that can be seen before is named here by its field,
because the error of a failed start does not tell which of its files it means.
"""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from app.core.problems import DefinitionInvalid, ServerUnavailable
from app.core.shapes import pointer_to

INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""All that a child gets of the daemon's environment."""

_MAGIC: Final = (
    b"#!",
    b"\x7fELF",
    b"\xcf\xfa\xed\xfe",  # Mach-O, 64 bits
    b"\xce\xfa\xed\xfe",  # Mach-O, 32 bits
    b"\xca\xfe\xba\xbe",  # Mach-O, several architectures
)


@dataclass(frozen=True, slots=True)
class Program:
    """One process to start, ready for the system call; holds expanded values, so it is never printed."""

    executable: str
    """An absolute path."""
    args: tuple[str, ...]
    """Without the executable."""
    cwd: str | None
    env: Mapping[str, str]

    @override
    def __repr__(self) -> str:
        """Say nothing that was expanded."""
        return f"Program(executable={self.executable!r}, …)"


def child_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return a child's environment: the inherited few, then the definition's own over them."""
    return {**{name: environment[name] for name in INHERITED if name in environment}, **own}


def resolve_program(
    server: str,
    *,
    command: str,
    args: tuple[str, ...],
    cwd: str | None,
    env: Mapping[str, str],
) -> Program:
    """Return the program that these expanded fields mean, ``env`` being the child's whole environment.

    A relative ``cwd`` counts from the daemon's own directory, a relative ``command`` with a slash from
    ``cwd``, and a bare ``command`` is looked up on the child's ``PATH``.

    Raises:
        DefinitionInvalid: a text cannot be given to a process.
        ServerUnavailable: ``command`` or ``cwd`` cannot be used; the Problem names which.
    """
    _require_passable(server, command=command, args=args, cwd=cwd, env=env)
    directory = _require_directory(server, cwd)
    executable = _find(server, command, directory, env.get("PATH", os.defpath))
    return Program(str(executable), args, None if cwd is None else str(directory), env)


def find_executable(command: str, *, path: str, directory: Path) -> Path | None:
    """Return the file that would be executed for the command, executable or not; None where there is none.

    Of several on the path the first executable one counts, else the first file. Relative and empty entries
    of the path are passed over: what happens to lie in the working directory is never started by a bare
    name.
    """
    if "/" in command:
        found = directory / command
        return found if found.exists() else None
    entries = [Path(entry) for entry in path.split(os.pathsep) if entry.startswith("/")]
    files = [file for entry in entries if (file := entry / command).is_file()]
    return next((file for file in files if os.access(file, os.X_OK)), files[0] if files else None)


def start_failure(server: str, error: OSError, program: Program) -> ServerUnavailable:
    """Return the Problem of a program that the system did not start, blaming a field where that is certain."""
    if program.cwd is not None and error.filename == program.cwd:
        return ServerUnavailable(server, "stdio", f"'cwd' cannot be used ({error.strerror})", field="cwd")
    match error.errno:
        case errno.ENOENT:
            reason = "'command' cannot be used: its interpreter or loader does not exist"
            return ServerUnavailable(server, "stdio", reason, field="command")
        case errno.E2BIG:
            reason = "'args' and 'env' are longer than the system allows"
            return ServerUnavailable(server, "stdio", reason, field="args")
        case errno.EACCES | errno.ENOEXEC | errno.ENOTDIR | errno.EISDIR | errno.ELOOP | errno.EPERM:
            reason = f"'command' cannot be used ({error.strerror})"
            return ServerUnavailable(server, "stdio", reason, field="command")
        case _:
            return ServerUnavailable(server, "stdio", f"the process could not be started ({error.strerror})")


def _require_passable(
    server: str, *, command: str, args: tuple[str, ...], cwd: str | None, env: Mapping[str, str]
) -> None:
    """Refuse what the system would cut off or misread: a NUL, text that has no bytes, a ``=`` in a name."""
    texts = [(pointer_to("command"), command), (pointer_to("cwd"), cwd or "")]
    texts += [(pointer_to("args", index), argument) for index, argument in enumerate(args)]
    texts += [(pointer_to("env", name), name + value) for name, value in env.items()]
    errors = [
        (pointer, "contains a character that no process can be given")
        for pointer, text in texts
        if not _is_passable(text)
    ]
    errors += [("/env", "has a name that no process can be given") for name in env if not name or "=" in name]
    if not command:
        errors.append(("/command", "is empty"))
    if errors:
        raise DefinitionInvalid(errors, server=server)


def _is_passable(text: str) -> bool:
    """Return whether the system can take the text as it is."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _require_directory(server: str, cwd: str | None) -> Path:
    """Return the child's working directory, absolute."""
    directory = Path.cwd() if cwd is None else Path.cwd() / cwd
    if cwd is None:
        return directory
    try:
        if not directory.exists():
            raise _unusable(server, "cwd", "the working directory does not exist")
        if not directory.is_dir():
            raise _unusable(server, "cwd", "the working directory is not a directory")
    except OSError as error:
        raise _unusable(server, "cwd", f"the working directory cannot be used ({error.strerror})") from error
    if not os.access(directory, os.X_OK):
        raise _unusable(server, "cwd", "the working directory may not be entered")
    return directory


def _find(server: str, command: str, directory: Path, path: str) -> Path:
    """Return the executable, after looking at what can be known of it before."""
    try:
        file = find_executable(command, path=path, directory=directory)
        if file is None:
            is_path = "/" in command
            where = (
                "the executable does not exist"
                if is_path
                else "it is not on the PATH that the daemon gives it; its whole path will do"
            )
            raise _unusable(server, "command", where)
        if file.is_dir():
            raise _unusable(server, "command", "it is a directory")
        if not os.access(file, os.X_OK):
            raise _unusable(server, "command", "the file is not executable")
        _require_program(server, file)
    except OSError as error:
        raise _unusable(server, "command", f"it cannot be used ({error.strerror})") from error
    return file


def _require_program(server: str, file: Path) -> None:
    """Refuse a file that the system cannot execute and that some libraries would hand to a shell instead."""
    if not os.access(file, os.R_OK):
        return  # executable without being readable: a binary; the system decides
    with file.open("rb") as opened:
        head = opened.read(4)
    if not head.startswith(_MAGIC):
        raise _unusable(
            server, "command", "the file is neither a binary of this system nor a script with a #! line"
        )


def _unusable(server: str, field: str, reason: str) -> ServerUnavailable:
    """Return the Problem that blames one field."""
    return ServerUnavailable(server, "stdio", f"'{field}' cannot be used: {reason}", field=field)
