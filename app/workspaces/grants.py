"""What the servers of a workspace were granted, for as long as their attachments live. SPEC §oauth.

A connection comes and goes; a person should not have to sign in again for that. In memory only.
"""

from app.core.definitions import HttpDefinition, StdioDefinition
from app.ports import Authorization


class Grants:
    """The authorizations of one workspace, by server name."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[StdioDefinition | HttpDefinition, Authorization]] = {}

    @property
    def has_token(self) -> bool:
        """Whether a token would be lost with the workspace."""
        return any(authorization.has_token for _, authorization in self._kept.values())

    def of(self, definition: StdioDefinition | HttpDefinition) -> Authorization | None:
        """Return what was granted to this very definition."""
        kept, authorization = self._kept.get(definition.name, (None, None))
        return authorization if kept == definition else None

    def keep(self, definition: StdioDefinition | HttpDefinition, authorization: Authorization | None) -> None:
        """Take what a server of this definition has now been granted, in the place of anything before it."""
        if authorization is None:
            self.forget(definition.name)
        else:
            self._kept[definition.name] = (definition, authorization)

    def forget(self, name: str) -> None:
        """Drop what the server of this name was granted: its attachment is gone."""
        self._kept.pop(name, None)
