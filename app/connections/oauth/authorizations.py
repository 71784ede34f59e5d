"""Which authorization a connection gets: none, the one its attachment has, or a new one. SPEC §oauth, §definition."""

import ssl
import time
from typing import Final, assert_never

from anyio.abc import TaskGroup
from yarl import URL

from app.connections.oauth.authorization import Clock, ServerAuthorization
from app.connections.oauth.connection_authorization import ConnectionAuthorization
from app.connections.oauth.fetch import Fetching
from app.connections.oauth.interactive import InteractiveAuthorization
from app.connections.oauth.machine import MachineAuthorization
from app.core.definitions import (
    Bearer,
    ClientCredentials,
    HttpDefinition,
    OAuthDynamic,
    OAuthMetadataDocument,
    OAuthPreRegistered,
)
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.ports import Target
from app.settings import Settings

CLIENT_CREDENTIALS: Final = "io.modelcontextprotocol/oauth-client-credentials"
"""The extension that a connection with client credentials declares, and no other one."""


class Authorizations:
    """Makes the authorizations of a daemon."""

    def __init__(
        self,
        settings: Settings,
        mask: Mask,
        *,
        tls: ssl.SSLContext | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Take the operator's terms for what servers name, the mask that learns every secret, and the roots.

        Raises:
            ValueError: ``PLURNK_CA_FILE`` cannot be read.
        """
        self._fetching = Fetching(settings, mask, tls=tls)
        self._clock = clock

    def of(
        self, target: Target, url: URL, client_secret: str | None, group: TaskGroup
    ) -> ConnectionAuthorization | None:
        """Return what the connection shows besides its definition's headers; None where that never changes.

        ``url`` and ``client_secret`` are expanded.
        """
        if isinstance(target.authorization, ServerAuthorization):
            return ConnectionAuthorization(target.authorization, group)
        made = self._made(target, url, client_secret)
        return None if made is None else ConnectionAuthorization(made, group)

    def _made(self, target: Target, url: URL, client_secret: str | None) -> ServerAuthorization | None:
        definition = target.definition
        if not isinstance(definition, HttpDefinition):
            return None
        fetcher = self._fetching.of(definition.name, url)
        match definition.authorization:
            case None | Bearer():
                return None
            case OAuthMetadataDocument() | OAuthPreRegistered() | OAuthDynamic() as config:
                return InteractiveAuthorization(
                    fetcher, config, client_secret=client_secret, clock=self._clock
                )
            case ClientCredentials() as config:
                return MachineAuthorization(
                    fetcher, config, client_secret=client_secret or "", clock=self._clock
                )
            case _:
                assert_never(definition.authorization)


def capabilities_with(capabilities: JsonObject, authorization: ConnectionAuthorization | None) -> JsonObject:
    """Return what a connection with this authorization declares."""
    extensions = capabilities.get("extensions")
    if authorization is None or not isinstance(authorization.authorization, MachineAuthorization):
        return capabilities
    shared = extensions if isinstance(extensions, dict) else {}
    return {**capabilities, "extensions": {**shared, CLIENT_CREDENTIALS: {}}}
