"""The durable map of a workspace: name to attached definition or tombstone. SPEC §effective, §state."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Attached:
    """The workspace attached this definition."""

    definition: str
    """The JSON text of the definition as it was sent, unexpanded."""


@dataclass(frozen=True, slots=True)
class Detached:
    """A tombstone: the workspace hides the service default of this name."""


AttachmentRecord: TypeAlias = Attached | Detached
