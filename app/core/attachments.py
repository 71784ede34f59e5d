"""The durable map of a workspace: name to attached definition or tombstone. SPEC §effective, §state."""

from dataclasses import dataclass
from typing import TypeAlias

import orjson

from app.core.definitions import HttpDefinition, StdioDefinition, parse_definition
from app.core.problems import DefinitionInvalid


@dataclass(frozen=True, slots=True)
class Attached:
    """The workspace attached this definition."""

    definition: str
    """The JSON text of the definition as it was sent, unexpanded."""


@dataclass(frozen=True, slots=True)
class Detached:
    """A tombstone: the workspace hides the service default of this name."""


AttachmentRecord: TypeAlias = Attached | Detached


def parse_record(name: str, record: Attached) -> StdioDefinition | HttpDefinition:
    """Return the definition that a stored record holds.

    Raises:
        DefinitionInvalid: the row no longer validates; names the server, and every fault by JSON Pointer.
    """
    try:
        value = orjson.loads(record.definition)
    except orjson.JSONDecodeError:
        raise DefinitionInvalid([("", "the stored row is not JSON")], server=name) from None
    try:
        definition = parse_definition(value)
    except DefinitionInvalid as invalid:
        raise DefinitionInvalid(invalid.errors, server=name) from None
    if definition.name != name:
        raise DefinitionInvalid(
            [("/name", "the stored row belongs to a server of another name")], server=name
        )
    return definition
