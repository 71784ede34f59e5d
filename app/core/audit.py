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
