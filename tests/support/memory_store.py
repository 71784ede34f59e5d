"""The Store port over a dict: for tests of what does not depend on a database."""

from collections.abc import Mapping

from app.core.attachments import AttachmentRecord
from app.core.audit import AuditRow


class MemoryStore:
    """Keeps everything, until it is gone."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, AttachmentRecord]] = {}
        self.rows: list[AuditRow] = []

    async def load(self, workspace: str) -> Mapping[str, AttachmentRecord]:
        """Return the workspace's map."""
        return dict(self.records.get(workspace, {}))

    async def apply(self, workspace: str, name: str, record: AttachmentRecord | None) -> None:
        """Write or drop one entry."""
        entries = self.records.setdefault(workspace, {})
        if record is None:
            entries.pop(name, None)
        else:
            entries[name] = record

    async def workspaces(self) -> list[str]:
        """Return the names with an entry."""
        return sorted(name for name, entries in self.records.items() if entries)

    async def record(self, row: AuditRow) -> None:
        """Keep the row."""
        self.rows.append(row)
