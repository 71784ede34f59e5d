"""What is effective in a workspace: the service defaults, overlaid by the workspace's durable map. SPEC §effective."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from app.core.attachments import Attached, AttachmentRecord, Detached, parse_record
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problem import Problem


@dataclass(frozen=True, slots=True)
class EffectiveServer:
    """One effective server, before anything connects to it, and who gave it."""

    name: str
    source: Literal["service", "workspace"]
    definition: StdioDefinition | HttpDefinition | None
    """None where the stored row no longer validates; ``problem`` says so."""
    problem: Problem | None = None


def resolve(
    name: str, default: StdioDefinition | HttpDefinition | None, record: AttachmentRecord | None
) -> EffectiveServer | None:
    """Return what a default and the workspace's record of one name make effective, or None for nothing."""
    match record:
        case None:
            return None if default is None else EffectiveServer(name, "service", default)
        case Detached():
            return None
        case Attached():
            try:
                return EffectiveServer(name, "workspace", parse_record(name, record))
            except Problem as problem:
                return EffectiveServer(name, "workspace", None, problem.again())
        case _:
            assert_never(record)


def resolve_all(
    defaults: Mapping[str, StdioDefinition | HttpDefinition], records: Mapping[str, AttachmentRecord]
) -> dict[str, EffectiveServer]:
    """Return every effective server by name, sorted by name."""
    names = sorted(defaults.keys() | records.keys())
    resolved = (resolve(name, defaults.get(name), records.get(name)) for name in names)
    return {server.name: server for server in resolved if server is not None}


def detached(records: Mapping[str, AttachmentRecord]) -> list[str]:
    """Return the names of the tombstones, sorted."""
    return sorted(name for name, record in records.items() if isinstance(record, Detached))


def after_detach(name: str, defaults: Mapping[str, StdioDefinition | HttpDefinition]) -> Detached | None:
    """Return what the durable map holds for a name once it is detached: a tombstone only over a default."""
    return Detached() if name in defaults else None
