"""The error codes of OAuth that may be named. SPEC §oauth.

An authorization server chooses the text of an error; only a code that a standard defines is ever repeated.
"""

from typing import Final

KNOWN: Final = frozenset(
    {
        # RFC 6749 §4.1.2.1 and §5.2
        "access_denied",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "server_error",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
        "unsupported_response_type",
        # RFC 6750 §3.1
        "insufficient_scope",
        "invalid_token",
        # RFC 7591 §3.2.2
        "invalid_client_metadata",
        "invalid_redirect_uri",
        "invalid_software_statement",
        "unapproved_software_statement",
        # RFC 8707 §2
        "invalid_target",
    }
)


def known_error(code: object) -> str | None:
    """Return the error code where a standard defines it, else None."""
    return code if isinstance(code, str) and code in KNOWN else None
