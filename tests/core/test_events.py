"""An interrupt in the shape of AG-UI: absent members are left out."""

import pytest

from app.core.events import Interrupt


@pytest.mark.spec("agui")
def test_an_interrupt_is_an_agui_interrupt() -> None:
    interrupt = Interrupt(
        id="int-1",
        operation="op-1",
        reason="tool_call",
        message="Call it?",
        expires_at="2026-11-30T12:00:00Z",
        response_schema={"type": "object"},
        metadata={"operation": "op-1"},
        tool_call_id="call-1",
        thread_id="t",
    )
    assert interrupt.document() == {
        "id": "int-1",
        "reason": "tool_call",
        "toolCallId": "call-1",
        "message": "Call it?",
        "responseSchema": {"type": "object"},
        "expiresAt": "2026-11-30T12:00:00Z",
        "metadata": {"plurnk": {"operation": "op-1"}},
    }


@pytest.mark.spec("agui")
def test_an_absent_tool_call_is_left_out() -> None:
    interrupt = Interrupt("i", "op", "confirmation", "?", "2026-11-30T12:00:00Z", {}, {})
    assert "toolCallId" not in interrupt.document()
