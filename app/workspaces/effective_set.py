"""A workspace's durable map beside the service defaults, and what is effective because of both. SPEC §effective.

Holds values only; the workspace decides when a record becomes true (after the store has it).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.attachments import Attached, AttachmentRecord, Detached, parse_record
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problem import Problem
from app.ports import Source


@dataclass(frozen=True, slots=True)
class EffectiveServer:
    """One effective server before anything connects to it."""

    name: str
    source: Source
    definition: StdioDefinition | HttpDefinition | None
    """None where the stored row no longer validates."""
    problem: Problem | None = None


class EffectiveSet:
    """The records of one workspace over the defaults of the service."""

    def __init__(self, defaults: Mapping[str, StdioDefinition | HttpDefinition]) -> None:
        self.defaults = defaults
        self._records: dict[str, AttachmentRecord] = {}
        self._servers: dict[str, EffectiveServer] = {}
        self._resolve_all()

    @property
    def servers(self) -> Mapping[str, EffectiveServer]:
        """The effective servers by name, sorted by name."""
        return self._servers

    @property
    def detached(self) -> list[str]:
        """The names of the tombstones, sorted."""
        return sorted(name for name, record in self._records.items() if isinstance(record, Detached))

    def load(self, records: Mapping[str, AttachmentRecord]) -> None:
        """Take the workspace's map as the store has it."""
        self._records = dict(records)
        self._resolve_all()

    def put(self, name: str, record: AttachmentRecord | None) -> None:
        """Take one record, or none, as the store now has it."""
        if record is None:
            self._records.pop(name, None)
        else:
            self._records[name] = record
        server = self._resolve(name)
        servers = {key: value for key, value in self._servers.items() if key != name}
        if server is not None:
            servers[name] = server
        self._servers = dict(sorted(servers.items()))

    def _resolve_all(self) -> None:
        names = sorted(self.defaults.keys() | self._records.keys())
        resolved = {name: self._resolve(name) for name in names}
        self._servers = {name: server for name, server in resolved.items() if server is not None}

    def _resolve(self, name: str) -> EffectiveServer | None:
        match self._records.get(name):
            case Detached():
                return None
            case Attached() as record:
                try:
                    return EffectiveServer(name, "workspace", parse_record(name, record))
                except Problem as problem:
                    return EffectiveServer(name, "workspace", None, problem)
            case None if name in self.defaults:
                return EffectiveServer(name, "service", self.defaults[name])
            case None:
                return None
