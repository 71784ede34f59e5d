"""Effective definitions: the service defaults, overlaid by a workspace's durable map. SPEC §effective."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from app.core.attachments import Attached, AttachmentRecord, Detached, parse_record
from app.core.definitions import HttpDefinition, StdioDefinition


@dataclass(frozen=True, slots=True)
class Effective:
    """One effective definition and who gave it."""

    definition: StdioDefinition | HttpDefinition
    source: Literal["service", "workspace"]


def resolve(
    defaults: Mapping[str, StdioDefinition | HttpDefinition], records: Mapping[str, AttachmentRecord]
) -> dict[str, Effective]:
    """Return the effective definitions by name, sorted by name.

    Raises:
        DefinitionInvalid: a stored row no longer validates; names its server.
    """
    effective = {name: Effective(definition, "service") for name, definition in defaults.items()}
    for name, record in records.items():
        match record:
            case Attached():
                effective[name] = Effective(parse_record(name, record), "workspace")
            case Detached():
                effective.pop(name, None)
            case _:
                assert_never(record)
    return dict(sorted(effective.items()))


def detached(records: Mapping[str, AttachmentRecord]) -> tuple[str, ...]:
    """Return the names of the tombstones, sorted."""
    return tuple(sorted(name for name, record in records.items() if isinstance(record, Detached)))


def after_detach(name: str, defaults: Mapping[str, StdioDefinition | HttpDefinition]) -> Detached | None:
    """Return what the durable map holds for a name once it is detached: a tombstone only over a default."""
    return Detached() if name in defaults else None
