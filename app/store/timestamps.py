"""Instants as the tables keep them: UTC text of one width, so that text order is time order. RFC 3339."""

from datetime import UTC, datetime


def to_text(instant: datetime) -> str:
    """Return the instant as ``2026-11-30T13:23:00.000000Z``."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Return the instant, in UTC."""
    return datetime.fromisoformat(text)
