"""What happens inside one run of an action, for whoever watches it; the doors translate. SPEC §agui."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from app.core.answers import Progress
from app.core.json_value import JsonObject
from app.core.value import value


@value
class PreparationStarted:
    """A candidate for this server is being prepared."""

    server: str


@value
class PreparationEnded:
    """The preparation is over, however it ended."""

    server: str


@value
class ToolCallStarted:
    """An operation took up a tool call; its arguments are complete and valid."""

    operation: str
    tool_call_id: str
    server: str
    tool: str
    arguments: JsonObject


@value
class OperationProgressed:
    """The peer reported progress of a call, or of a read or a prompt, which has no tool call."""

    operation: str
    tool_call_id: str | None
    progress: Progress


@value
class ToolCallEnded:
    """The tool call has a result."""

    operation: str
    tool_call_id: str
    is_error: bool
    content: list[Any]


RunEvent: TypeAlias = (
    PreparationStarted | PreparationEnded | ToolCallStarted | OperationProgressed | ToolCallEnded
)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One open question, in the shape of an AG-UI interrupt. AG-UI 1.0 interrupts."""

    id: str
    """Unguessable."""
    operation: str
    reason: str
    message: str
    expires_at: str
    """RFC 3339, UTC."""
    response_schema: JsonObject
    metadata: JsonObject
    """The value of ``metadata.plurnk``."""
    tool_call_id: str | None = None
    thread_id: str | None = None

    def document(self) -> JsonObject:
        """Return the AG-UI interrupt object."""
        document: JsonObject = {"id": self.id, "reason": self.reason}
        if self.tool_call_id is not None:
            document["toolCallId"] = self.tool_call_id
        document["message"] = self.message
        document["responseSchema"] = self.response_schema
        document["expiresAt"] = self.expires_at
        document["metadata"] = {"plurnk": self.metadata}
        return document
