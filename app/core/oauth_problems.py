"""What can go wrong while a server is authorized. SPEC §problems, §oauth.

Reasons are our own sentences: nothing that an authorization server wrote is in them.
"""

from typing import Final

from app.core.problem import Problem
from app.core.problems import AuthorizationRefused

USED_UP: Final = "another one was handed over before"
TOO_LATE: Final = "it comes too late"


def sign_in_required(server: str) -> AuthorizationRefused:
    """Return the Problem of a server that is ``authorization-required``."""
    return AuthorizationRefused(
        server, "a person has to sign in first; start that with workspace.mcp.reconnect"
    )


class OAuthNotPending(Problem):
    """No authorization of this server is pending in the workspace."""

    code, title, status = "oauth-not-pending", "No authorization pending", 404

    def __init__(self, server: str) -> None:
        super().__init__(
            f"No authorization of server '{server}' is pending. Start one with attach, replace or reconnect.",
            server=server,
        )


class OAuthCallbackInvalid(Problem):
    """The callback URL does not complete the pending authorization."""

    code, title, status = "oauth-callback-invalid", "OAuth callback invalid", 400

    def __init__(self, server: str, reason: str, *, is_over: bool) -> None:
        """Take what is wrong with it, and whether the attempt was used up by it."""
        then = (
            "Start again with workspace.mcp.reconnect, or attach or replace it again"
            if is_over
            else "The authorization is still pending: hand over the whole URL that the browser was sent back to"
        )
        super().__init__(f"The callback for server '{server}' was refused: {reason}. {then}.", server=server)
        self.is_over = is_over
        """Whether the attempt was used up; else the question is as open as before."""


class OAuthTargetConflict(Problem):
    """The server was changed while its authorization was pending."""

    code, title, status = "oauth-target-conflict", "OAuth target conflict", 409

    def __init__(self, server: str) -> None:
        super().__init__(
            f"Server '{server}' was changed while its authorization was pending; nothing was changed by it. "
            "List the servers and start again.",
            server=server,
        )


class OAuthMetadataInvalid(Problem):
    """The server or its authorization server describes itself in a way that cannot be used safely."""

    code, title, status = "oauth-metadata-invalid", "OAuth metadata invalid", 502

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"Server '{server}' cannot be authorized: {reason}. Its operator has to mend that.", server=server
        )


class OAuthClientCredentialsFailed(Problem):
    """The authorization server gave no token for the client credentials of the definition."""

    code, title, status = "oauth-client-credentials-failed", "OAuth client credentials failed", 502

    def __init__(self, server: str, reason: str, *, client_id: str) -> None:
        super().__init__(
            f"Server '{server}' cannot be authorized with its client credentials: {reason}. "
            "Check clientId, clientSecret and scope of its definition.",
            server=server,
            clientId=client_id,
        )
