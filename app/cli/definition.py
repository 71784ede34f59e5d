"""Builds a definition from the words of ``attach`` and ``replace``; the daemon judges it. SPEC §cli, §definition.

Secrets stay out of process arguments: a bearer token can only be named, ``--env NAME`` passes a reference on.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from app.cli.failures import UsageFault
from app.core.json_value import JsonObject

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", re.ASCII)
_URL = re.compile(r"https?://", re.IGNORECASE)
REDIRECT_URL: Final = "http://127.0.0.1:7777/callback"
"""Where a browser comes back from a sign-in, unless a definition says otherwise; ``authorize`` listens there."""
EXAMPLE = "For example: plurnk-mcpd attach time -- python -m mcp_server_time"


@dataclass(frozen=True, slots=True)
class DefinitionWords:
    """What was said on the command line about the server, unread."""

    name: str | None = None
    target: Sequence[str] = ()
    """One http(s) URL, or a command and its arguments."""
    env: Sequence[str] = ()
    """``NAME=VALUE``, or ``NAME`` for a reference to the daemon's own variable of that name."""
    headers: Sequence[str] = ()
    """``Name: value``."""
    bearer: str | None = None
    cwd: str | None = None
    tools: Sequence[str] | None = None
    """Names, each word may hold several parted by commas; an empty word alone enables none."""
    read: Sequence[str] | None = None
    file: str | None = None
    """A path, or ``-`` for standard input."""
    sign_in: bool = False


def build(words: DefinitionWords, *, directory: Path, read: Callable[[str], bytes]) -> JsonObject:
    """Return the definition; relative paths are taken from ``directory``, ``read`` reads ``--file``.

    Raises:
        UsageFault: the words contradict each other or one of them cannot be read.
    """
    if words.file is not None:
        return _from_file(words, words.file, read)
    if words.name is None or not words.target:
        raise UsageFault("Say what the server is: a name, then a URL or a command.", EXAMPLE)
    if len(words.target) == 1 and _URL.match(words.target[0]):
        definition = _http(words, words.name)
    else:
        definition = _stdio(words, words.name, directory)
    for member, names in (("tools", words.tools), ("read", words.read)):
        if names is not None:
            definition[member] = [name for word in names for name in word.split(",") if name]
    return definition


def _from_file(words: DefinitionWords, file: str, read: Callable[[str], bytes]) -> JsonObject:
    others = (words.target, words.env, words.headers, words.bearer, words.cwd, words.tools, words.read)
    if any(others) or words.sign_in:
        raise UsageFault(
            "--file holds the whole definition; the other words would change it.", "Leave them out."
        )
    try:
        definition = orjson.loads(read(file))
    except OSError as error:
        raise UsageFault(f"The file '{file}' cannot be read: {error.strerror}.", "Check the path.") from error
    except orjson.JSONDecodeError as error:
        raise UsageFault(
            f"'{file}' is not JSON: line {error.lineno}, column {error.colno}.", "Mend it."
        ) from error
    if not isinstance(definition, dict):
        raise UsageFault(f"'{file}' holds no JSON object.", "Put one server definition into it.")
    if words.name is not None and definition.setdefault("name", words.name) != words.name:
        raise UsageFault(f"'{file}' defines another name than '{words.name}'.", "Leave one of the two out.")
    return definition


def _http(words: DefinitionWords, name: str) -> JsonObject:
    if words.env or words.cwd is not None:
        raise UsageFault("--env and --cwd are for a command, not for a URL.", "Use --header or --bearer.")
    definition: JsonObject = {"name": name, "transport": "http", "url": words.target[0]}
    if words.headers:
        definition["headers"] = dict(_header(word) for word in words.headers)
    if words.bearer is not None and words.sign_in:
        raise UsageFault("--bearer and --sign-in are two ways to be authorized.", "Leave one of them out.")
    if words.sign_in:
        definition["authorization"] = {"type": "oauth", "redirectUrl": REDIRECT_URL}
    if words.bearer is not None:
        if not _REFERENCE.fullmatch(words.bearer):
            raise UsageFault(
                "--bearer takes the name of a variable of the daemon's environment, never the token itself.",
                "Write it as '${NAME}' in single quotes, so that the shell leaves it alone.",
            )
        definition["authorization"] = {"type": "bearer", "token": words.bearer}
    return definition


def _stdio(words: DefinitionWords, name: str, directory: Path) -> JsonObject:
    if words.headers or words.bearer is not None or words.sign_in:
        raise UsageFault("--header, --bearer and --sign-in are for a URL, not for a command.", "Use --env.")
    command, *arguments = words.target
    definition: JsonObject = {"name": name, "transport": "stdio", "command": _located(command, directory)}
    if arguments:
        definition["args"] = [*arguments]
    if words.cwd is not None:
        definition["cwd"] = words.cwd if "${" in words.cwd else str(directory / words.cwd)
    if words.env:
        definition["env"] = dict(_variable(word) for word in words.env)
    return definition


def _located(command: str, directory: Path) -> str:
    """Return the command; a relative path means the caller's directory, which is not the daemon's."""
    return str(directory / command) if "/" in command and not command.startswith("/") else command


def _variable(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name:
        raise UsageFault(
            "--env takes NAME=VALUE, or NAME for the daemon's own.", "For example: --env 'KEY=${KEY}'"
        )
    return name, value if equals else f"${{{name}}}"


def _header(word: str) -> tuple[str, str]:
    name, colon, value = word.partition(":")
    if not colon or not name.strip():
        raise UsageFault("--header takes 'Name: value'.", "For example: --header 'X-Key: ${KEY}'")
    return name.strip(), value.strip()
