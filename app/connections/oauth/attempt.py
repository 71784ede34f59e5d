"""One sign-in that a person was asked for, from its URL to the tokens that its code gives. SPEC §oauth.

RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207. It judges the callback and asks once; whose the tokens are then is
``interactive``'s matter. Nothing of it runs while the person is away.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from app.connections.oauth.authorization import Clock, ServerAuthorization
from app.connections.oauth.clients import OAuthClient
from app.connections.oauth.discovery import AuthorizationServer
from app.connections.oauth.tokens import TokenRefusedError, TokenSet, exchange_code
from app.core.callback import Callback, CallbackError, read_callback
from app.core.oauth_errors import known_error
from app.core.oauth_problems import TOO_LATE, USED_UP, OAuthCallbackInvalid

LIFETIME: Final = timedelta(minutes=10)


class Attempt:
    """Implements ``ports.AuthorizationAttempt``."""

    def __init__(
        self,
        authorization: ServerAuthorization,
        server: AuthorizationServer,
        client: OAuthClient,
        *,
        redirect_url: str,
        scopes: tuple[str, ...],
        on_tokens: Callable[[TokenSet], None],
        on_client_refused: Callable[[], None],
        clock: Clock,
    ) -> None:
        """Take whose tokens these will be, and whom to tell, without awaiting, of them or of an unknown client."""
        assert server.authorization_endpoint is not None  # noqa: S101 discovery has seen to it
        self.authorization = authorization
        self._server = server
        self._client = client
        self._redirect_url = redirect_url
        self._scopes = scopes
        self._on_tokens = on_tokens
        self._on_client_refused = on_client_refused
        self._clock = clock
        self._state = secrets.token_urlsafe(32)
        self._verifier = secrets.token_urlsafe(48)
        authorization.fetcher.secrets.add(self._verifier)
        self._ends_at = clock() + LIFETIME.total_seconds()
        self._is_used = False
        self.expires_at = datetime.now(UTC) + LIFETIME
        """When the callback comes too late, in UTC, for people."""
        self.url = prepare_grant_uri(
            server.authorization_endpoint,
            client.client_id,
            "code",
            redirect_uri=redirect_url,
            scope=" ".join(scopes) or None,
            state=self._state,
            resource=server.resource,
            code_challenge=create_s256_code_challenge(self._verifier),
            code_challenge_method="S256",
        )
        """Where the person signs in."""

    @property
    def is_over(self) -> bool:
        """Whether no callback can complete it any more: its ``state`` was used, or it has expired."""
        return self._is_used or self._clock() >= self._ends_at

    @property
    def seconds_left(self) -> float:
        """See ``ports.AuthorizationAttempt``."""
        return max(0.0, self._ends_at - self._clock())

    async def complete(self, callback_url: str) -> None:
        """Have a token on return; see ``ports.AuthorizationAttempt.complete``.

        Raises:
            OAuthCallbackInvalid: a wrong callback, or a second one; where ``is_over`` is False nothing was used up.
            OAuthMetadataInvalid: the authorization server gives no usable token.
            ServerUnavailable: it cannot be reached.
        """
        code = self._judged(callback_url)
        fetcher = self.authorization.fetcher
        fetcher.secrets.add(code)
        try:
            tokens = await exchange_code(
                fetcher,
                self._server,
                self._client,
                code=code,
                code_verifier=self._verifier,
                redirect_url=self._redirect_url,
                scopes=self._scopes,
            )
        except TokenRefusedError as refused:
            if refused.code == "invalid_client":
                self._on_client_refused()
            raise self._invalid(f"the authorization server refused its code{_named(refused.code)}") from None
        self._on_tokens(tokens)

    def _judged(self, callback_url: str) -> str:
        """Return the code of the callback, which has used the attempt up from now on; never awaits.

        Raises:
            OAuthCallbackInvalid: it has none that may be used.
        """
        if self.is_over:
            raise self._invalid(USED_UP if self._is_used else TOO_LATE)
        try:
            callback = read_callback(callback_url, self._redirect_url)
        except CallbackError as error:
            raise self._invalid(error.reason) from None
        if not secrets.compare_digest(_bytes(callback.state), _bytes(self._state)):
            raise self._invalid("its state is not the one of this authorization")
        self._is_used = True
        self._require_issuer(callback)
        if callback.error is not None:
            raise self._invalid(
                f"the authorization server reports an error{_named(known_error(callback.error))}"
            )
        if callback.code is None:
            raise self._invalid("it has no code")
        return callback.code

    def _require_issuer(self, callback: Callback) -> None:
        """Return where the callback may come from the authorization server of this attempt. RFC 9207 §2.4.

        Raises:
            OAuthCallbackInvalid: it comes from another one, or does not say from whom although it always should.
        """
        if callback.iss is None and self._server.is_iss_sent:
            raise self._invalid("it has no iss, which its authorization server says to send")
        if callback.iss is not None and callback.iss != self._server.issuer:
            raise self._invalid("its iss is not the authorization server that was asked")

    def _invalid(self, reason: str) -> OAuthCallbackInvalid:
        return OAuthCallbackInvalid(self.authorization.server, reason, is_over=self.is_over)


def _named(code: str | None) -> str:
    return f" ({code})" if code else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
