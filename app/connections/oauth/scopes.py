"""Which scopes are asked for. SPEC §oauth; MCP 2026-07-28 basic/authorization, Scope Selection Strategy."""

from typing import Final

from app.connections.oauth.discovery import AuthorizationServer
from app.core.challenge import BearerChallenge
from app.core.definitions import ClientCredentials, InteractiveOAuth
from app.core.scope_names import scope_names, union

OFFLINE_ACCESS: Final = "offline_access"


def scopes_to_ask(
    server: AuthorizationServer,
    challenge: BearerChallenge,
    config: InteractiveOAuth | ClientCredentials,
    *,
    before: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the scopes of the next request, in a stable order; none means that no ``scope`` is sent.

    Those of the challenge, else of the definition, else of the resource's metadata, added to those that were asked
    for ``before``. Where any are asked for, a person's sign-in asks for ``offline_access`` too if the authorization
    server lists it: alone it would ask for less than nothing does.
    """
    asked = union(before, challenge.scope or ())
    if not asked:
        asked = scope_names(config.scope or "") or server.resource_scopes
    is_interactive = not isinstance(config, ClientCredentials)
    if asked and is_interactive and OFFLINE_ACCESS in server.scopes_supported:
        return union(asked, (OFFLINE_ACCESS,))
    return asked
