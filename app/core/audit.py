"""One row of the append-only audit table: who did what to which server, and how it ended. SPEC §observe."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A management action that ended. No values, no definitions."""

    at: datetime
    """UTC."""
    actor: str
    """``operator`` or ``workspace``: the kind of token."""
    workspace: str
    kind: str
    server: str | None
    outcome: str
    """``ok``, ``pending``, or the code of the Problem."""


class AuditTrail:
    """The one row that an action leaves: with the change that it makes, or else at its end."""

    __slots__ = ("_actor", "_kind", "_server", "_workspace", "is_left")

    def __init__(self, actor: str, workspace: str, kind: str, server: str | None) -> None:
        self._actor, self._workspace, self._kind, self._server = actor, workspace, kind, server
        self.is_left = False
        """Whether the row is durable."""

    def row(self, outcome: str, at: datetime) -> AuditRow:
        """Return the row of an action that ended so."""
        return AuditRow(at, self._actor, self._workspace, self._kind, self._server, outcome)
