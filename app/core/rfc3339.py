"""How a moment is written for clients: RFC 3339 in UTC, to the millisecond. SPEC §agui."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Return the moment as ``2026-11-30T13:23:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
