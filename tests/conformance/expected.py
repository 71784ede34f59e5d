"""What the official suite has to show, scenario by scenario; nothing may pass by doing nothing. MCP 2026-07-28.

The counts are those that the reference clients get: a scenario with fewer was not really run.
"""

RELEASES = {"0.2.0-alpha.11": "conformance-11", "0.2.0-alpha.12": "conformance-12"}
"""The releases of the suite and the names they are installed under."""

SCORED: dict[str, int] = {
    "tools_call": 2,
    "request-metadata": 6,
    "http-standard-headers": 9,
    "http-custom-headers": 18,
    "http-invalid-tool-headers": 11,
    "sep-2322-client-request-state": 5,
    "json-schema-ref-no-deref": 1,
    "auth/metadata-default": 13,
    "auth/metadata-var1": 13,
    "auth/metadata-var2": 13,
    "auth/metadata-var3": 13,
    "auth/basic-cimd": 12,
    "auth/scope-from-www-authenticate": 14,
    "auth/scope-from-scopes-supported": 14,
    "auth/scope-omitted-when-undefined": 14,
    "auth/scope-step-up": 23,
    "auth/scope-retry-limit": 11,
    "auth/token-endpoint-auth-basic": 18,
    "auth/token-endpoint-auth-post": 18,
    "auth/token-endpoint-auth-none": 18,
    "auth/pre-registration": 12,
    "auth/resource-mismatch": 2,
    "auth/offline-access-scope": 15,
    "auth/offline-access-not-supported": 14,
    "auth/authorization-server-migration": 27,
    "auth/iss-supported": 14,
    "auth/iss-not-advertised": 14,
    "auth/iss-supported-missing": 8,
    "auth/iss-wrong-issuer": 8,
    "auth/iss-unexpected": 8,
    "auth/iss-normalized": 8,
    "auth/metadata-issuer-mismatch": 3,
}
"""The scored scenarios of the revision, and how many checks have to succeed at least."""

UNSCORED = {
    "json-schema-2020-12-preservation",
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
}
"""Those that the contract run shows without counting them: extensions, and one that came after the release."""

STRICT: dict[str, int] = {**SCORED, "json-schema-2020-12-preservation": 9}
"""Those of the strict run, in which a warning is a failure too."""

ALONE: dict[str, int] = {**STRICT, "auth/client-credentials-basic": 7}
"""Those that are run one by one: the extension's too."""

_LATER: dict[str, int] = {
    "http-invalid-tool-headers": 12,
    **{f"auth/metadata-{kind}": 18 for kind in ("default", "var1", "var2", "var3")},
    **{f"auth/token-endpoint-auth-{method}": 19 for method in ("basic", "post", "none")},
}
"""Where alpha.12 checks more."""


def needed(release: str, scenario: str) -> int:
    """Return how many checks of a scenario have to succeed."""
    later = _LATER if release == "0.2.0-alpha.12" else {}
    return later.get(scenario, ALONE[scenario])
