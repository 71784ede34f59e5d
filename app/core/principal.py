"""Who is asking: the operator, or the holder of one workspace's token. SPEC §security."""

from dataclasses import dataclass

from app.core.problems import WorkspaceRefused


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller."""

    workspace: str | None = None
    """The only workspace the token is valid for; None for the operator."""

    @property
    def actor(self) -> str:
        """The word for the audit table and the log."""
        return "operator" if self.workspace is None else "workspace"

    def require(self, workspace: str) -> None:
        """Return where the caller may use the workspace.

        Raises:
            WorkspaceRefused: it may not.
        """
        if self.workspace is not None and self.workspace != workspace:
            raise WorkspaceRefused

    def require_operator(self) -> None:
        """Return where the caller is the operator.

        Raises:
            WorkspaceRefused: the token is one workspace's.
        """
        if self.workspace is not None:
            raise WorkspaceRefused
