"""The environment the daemon goes by: three layers merged by exact name. SPEC §defaults.

``.env.defaults`` (shipped), ``.env`` in the working directory and the process's environment; later wins. The
process's own environment is never changed. Of ``.env`` the grammar is python-dotenv's, without interpolation.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dotenv.parser import Binding, parse_stream
from typing_extensions import override

from app.core.references import OWN_PREFIX


@dataclass(frozen=True, slots=True)
class Environment:
    """The merged environment; shows no value."""

    values: Mapping[str, str]
    explicit: frozenset[str]
    """The names that ``.env`` or the process gives a value."""
    faults: tuple[str, ...] = ()
    """What is wrong with ``.env``, a line each."""

    @override
    def __repr__(self) -> str:
        """Say how many names there are."""
        return f"Environment({len(self.values)} names)"


def load(process: Mapping[str, str], directory: Path, shipped_text: str) -> Environment:
    """Return the three layers merged.

    An empty value unsets what an earlier layer gave. Where none gave any, a ``PLURNK_`` name stays unset and
    every other name is set and empty, as references see it. A ``.env`` that is no file, as the directory of a
    virtual environment, is none.
    """
    shipped, _ = _parse(shipped_text)
    local, faults = _read(directory / ".env")
    values: dict[str, str] = {}
    for layer in (shipped, local, process):
        _overlay(values, layer)
    given = {name for name in (*local, *process) if values.get(name)}
    return Environment(MappingProxyType(values), frozenset(given), tuple(faults))


def _overlay(values: dict[str, str], layer: Mapping[str, str]) -> None:
    for name, value in layer.items():
        if value or not (name.startswith(OWN_PREFIX) or values.get(name)):
            values[name] = value
        else:
            values.pop(name, None)


def _read(file: Path) -> tuple[dict[str, str], list[str]]:
    try:
        text = file.read_bytes().decode()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return {}, []
    except UnicodeDecodeError:
        return {}, [".env: is not UTF-8 text"]
    except OSError as error:
        return {}, [f".env: cannot be read ({error.strerror or type(error).__name__})"]
    return _parse(text)


def _parse(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the bindings of the text, the last of each name, and a line for each that cannot be parsed."""
    bindings = tuple(parse_stream(io.StringIO(text, newline=None)))
    values = {each.key: each.value for each in bindings if each.key is not None and each.value is not None}
    return values, [f".env: line {_line(each)} is no NAME=value" for each in bindings if each.error]


def _line(binding: Binding) -> int:
    """Return the line of a statement; the parser counts from the blank lines before it."""
    statement = binding.original.string
    blank = statement[: len(statement) - len(statement.lstrip())]
    return binding.original.line + blank.count("\n")
