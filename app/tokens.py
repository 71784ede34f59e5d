"""Bearer tokens: the operator's, and those derived from it for one workspace each. SPEC §security, RFC 6750.

A workspace token is ``plurnk.<workspace>.<mac>``, the MAC being HMAC-SHA256 under the operator's token:
nothing is stored, and a new operator token ends them all. Whoever holds one can try to guess the operator's
token offline, so a token of one's own choice wants to be as long as a generated one.
"""

import base64
import hashlib
import hmac
import re
import secrets

from app.core.names import parse_workspace_name
from app.core.principal import Principal
from app.core.problems import WorkspaceInvalid, WorkspaceRequired
from app.home import Home

OPEN = "none"
"""The value of ``PLURNK_TOKEN`` that opens the daemon to everybody who reaches it."""

_OPERATOR = Principal()
_PREFIX = "plurnk"
_DERIVATION = b"plurnk-mcpd workspace token 1\0"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
_HEADER = re.compile(rf"bearer +({_TOKEN.pattern})", re.ASCII | re.IGNORECASE)


class TokenRefused(Exception):
    """A token cannot be used or made; the text is one sentence that says what to do, without the token."""


def operator_token(setting: str | None, home: Home) -> str | None:
    """Return the operator's token: ``PLURNK_TOKEN``, else the one in the home, generated where missing.

    None where ``PLURNK_TOKEN`` is ``none``. Works beside a running daemon, and two at once agree on one
    token. Needs a home that ``Home.ensure`` made ready.

    Raises:
        TokenRefused: it is not a token that a header can carry.
        HomeRefused: it can neither be read nor kept.
    """
    if setting == OPEN:
        return None
    if setting:
        if not _TOKEN.fullmatch(setting):
            raise TokenRefused("PLURNK_TOKEN must consist of letters, digits and -._~+/ (RFC 6750).")
        return setting
    if (kept := home.read(home.token)) is None:
        home.write(home.token, secrets.token_urlsafe(32).encode() + b"\n", replace=False)
        kept = home.read(home.token) or b""
    token = kept.decode("ascii", errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise TokenRefused(
            f"{home.token} does not hold a token. Remove it, and the next start generates one."
        )
    return token


class Tokens:
    """Who a bearer token belongs to."""

    def __init__(self, operator: str | None) -> None:
        self._key = None if operator is None else operator.encode()
        # Compared are digests under a key of this process, all of one length: neither the length of a token
        # nor how far a guess is right can be measured.
        self._blind = secrets.token_bytes(32)
        self._operator = b"" if self._key is None else self._digest(self._key)
        self._operator_header = b"" if self._key is None else self._digest(b"Bearer " + self._key)

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches the daemon is the operator."""
        return self._key is None

    def principal(self, authorization: str | None) -> Principal | None:
        """Return whom the value of an ``Authorization`` header speaks for; None where it is nobody.

        On an open daemon that is the operator, whatever the header says.
        """
        if self._key is None:
            return _OPERATOR
        if authorization is None:
            return None
        # The operator's own header as nearly every client writes it needs no parsing.
        if hmac.compare_digest(
            self._digest(authorization.encode(errors="surrogatepass")), self._operator_header
        ):
            return _OPERATOR
        match = _HEADER.fullmatch(authorization.strip(" \t"))
        if match is None:
            return None
        token = match.group(1)
        if hmac.compare_digest(self._digest(token.encode()), self._operator):
            return _OPERATOR
        return self._workspace_principal(token)

    def for_workspace(self, name: str) -> str:
        """Return the token that is valid for this workspace only.

        Raises:
            WorkspaceInvalid: it is not a workspace name.
            TokenRefused: the daemon is open.
        """
        if self._key is None:
            raise TokenRefused("The daemon is open (PLURNK_TOKEN=none), so there is no token to derive from.")
        return self._derived(self._key, parse_workspace_name(name))

    def _workspace_principal(self, token: str) -> Principal | None:
        prefix, _, rest = token.partition(".")
        name, _, _mac = rest.rpartition(".")
        if prefix != _PREFIX or self._key is None:
            return None
        try:
            expected = self._derived(self._key, parse_workspace_name(name))
        except (WorkspaceInvalid, WorkspaceRequired):
            return None
        if hmac.compare_digest(self._digest(token.encode()), self._digest(expected.encode())):
            return Principal(name)
        return None

    def _digest(self, token: bytes) -> bytes:
        return hashlib.blake2b(token, key=self._blind).digest()

    @staticmethod
    def _derived(key: bytes, workspace: str) -> str:
        mac = hmac.digest(key, _DERIVATION + workspace.encode(), hashlib.sha256)
        return f"{_PREFIX}.{workspace}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
