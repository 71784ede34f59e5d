"""A workspace's durable map beside the service defaults, as the store last had it. SPEC §effective.

Holds values only; the workspace decides when a record becomes true (after the store has it).
"""

from collections.abc import Mapping

from app.core.attachments import Attached, AttachmentRecord
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.effective import EffectiveServer, detached, resolve, resolve_all


class EffectiveSet:
    """The records of one workspace over the defaults of the service."""

    def __init__(self, defaults: Mapping[str, StdioDefinition | HttpDefinition]) -> None:
        self.defaults = defaults
        self._records: dict[str, AttachmentRecord] = {}
        self._servers = resolve_all(defaults, {})

    @property
    def servers(self) -> Mapping[str, EffectiveServer]:
        """The effective servers by name, sorted by name."""
        return self._servers

    @property
    def detached(self) -> list[str]:
        """The names of the tombstones, sorted."""
        return detached(self._records)

    def load(self, records: Mapping[str, AttachmentRecord]) -> None:
        """Take the workspace's map as the store has it."""
        self._records = dict(records)
        self._servers = resolve_all(self.defaults, self._records)

    def put(
        self,
        name: str,
        record: AttachmentRecord | None,
        parsed: StdioDefinition | HttpDefinition | None = None,
    ) -> None:
        """Take one record, or none, as the store now has it; ``parsed`` is its definition where somebody has it."""
        if record is None:
            self._records.pop(name, None)
        else:
            self._records[name] = record
        servers = {key: server for key, server in self._servers.items() if key != name}
        if isinstance(record, Attached) and parsed is not None:
            servers[name] = EffectiveServer(name, "workspace", parsed)
        elif (server := resolve(name, self.defaults.get(name), record)) is not None:
            servers[name] = server
        self._servers = dict(sorted(servers.items()))
