"""Results of type ``input_required`` as peers send them, and the answers to their questions. SPEC §calls."""

from typing import Any

from app.core.interrupts import ResumeEntry

ENVIRONMENT: dict[str, Any] = {
    "type": "object",
    "properties": {"env": {"type": "string", "enum": ["staging", "prod"]}},
    "required": ["env"],
}
PAGE = "https://pay.example/x?o=1"
STATE = '  a\u0000é/+=%7B "\\'
"""A ``requestState`` that every careless hand would change."""


def form(message: str = "Which environment?", schema: Any = None, **params: Any) -> dict[str, Any]:
    """Return an elicitation of a form."""
    params = {"mode": "form", "message": message, "requestedSchema": schema or ENVIRONMENT, **params}
    return {"method": "elicitation/create", "params": params}


def link(url: Any = PAGE, message: str = "Pay first.") -> dict[str, Any]:
    """Return an elicitation of a URL."""
    return {"method": "elicitation/create", "params": {"mode": "url", "url": url, "message": message}}


def asks(*, state: Any = None, **requests: Any) -> dict[str, Any]:
    """Return a result that requires these inputs; what is None is absent."""
    value: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        value["inputRequests"] = requests
    if state is not None:
        value["requestState"] = state
    return value


def fills(interrupt: str, **content: Any) -> ResumeEntry:
    """Return the answer that fills in a form."""
    return ResumeEntry(interrupt, "resolved", content)


def opens(interrupt: str) -> ResumeEntry:
    """Return the answer that agrees to open a URL."""
    return ResumeEntry(interrupt, "resolved")


def declines(interrupt: str) -> ResumeEntry:
    """Return an explicit no."""
    return ResumeEntry(interrupt, "cancelled", metadata={"plurnk": {"action": "decline"}})


def dismisses(interrupt: str) -> ResumeEntry:
    """Return the answer of somebody who chose nothing."""
    return ResumeEntry(interrupt, "cancelled")
