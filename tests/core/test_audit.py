"""The row that an action leaves, and who knows that it is left. SPEC §observe."""

from datetime import UTC, datetime

import pytest

from app.core.audit import AuditRow, AuditTrail

AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.spec("observe")
@pytest.mark.parametrize("server", ["s", None])
def test_a_trail_knows_the_action_and_is_told_when_and_how_it_ended(server: str | None) -> None:
    trail = AuditTrail("operator", "w", "workspace.mcp.attach", server)
    assert trail.row("ok", AT) == AuditRow(AT, "operator", "w", "workspace.mcp.attach", server, "ok")
    assert not trail.is_left
