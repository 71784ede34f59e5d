"""Requests to URLs that a server named: metadata, registration and token endpoints. SPEC §oauth, §security.

``Fetching`` is what all of them share, one a daemon; a ``Fetcher`` speaks for one server definition. The address that
is judged is the one that is connected to. It keeps no connection, no cookie and reads no proxy from the environment;
what a document means is for ``discovery``, ``clients`` and ``tokens``.
"""

import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urljoin

import anyio
import httpx2
import orjson
from yarl import URL

from app.connections.address_rule import AddressRule, Reach, is_address, is_legacy_number, reach_of
from app.connections.http_pool import tls_context
from app.connections.http_request import user_agent
from app.connections.wire import parsed_json
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from app.core.text_rules import endpoint_fault
from app.settings import MIB, Settings

TOTAL_S: Final = 10.0
"""Seconds for one fetch, with every redirect and every address that is tried."""
CONNECT_S: Final = 4.0
"""Seconds for one of a host's addresses, so that another has its turn."""
BODY_MAX: Final = MIB
REDIRECTS_MAX: Final = 3

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns a host's addresses, or raises OSError."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An HTTP answer."""

    status: int
    document: JsonObject | None
    """The body, where it is a JSON object."""

    @property
    def is_success(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300

    @property
    def is_passing(self) -> bool:
        """Whether the status speaks of now, not of the request: the same may succeed later."""
        return self.status == 429 or self.status >= 500


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host as the system resolves it, in its order, each once."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


class Fetching:
    """The operator's terms for every fetch, and the mask that learns what is fetched."""

    def __init__(
        self,
        settings: Settings,
        mask: Mask,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = system_addresses,
    ) -> None:
        """Take the roots, or read them where nobody has; nothing is opened.

        Raises:
            ValueError: ``PLURNK_CA_FILE`` has no certificates that can be read.
        """
        self.rule = AddressRule(settings.http_hosts)
        self.proxy = settings.http_proxy
        self.tls = tls or tls_context(settings.ca_file)
        self.mask = mask
        self.resolve = resolve

    def of(self, server: str, url: URL) -> "Fetcher":
        """Return the fetcher of one definition: its server's name and its URL, expanded."""
        return Fetcher(self, server, url)


class Fetcher:
    """Fetches what one server and its authorization server name; knows how private that server itself is."""

    def __init__(self, terms: Fetching, server: str, url: URL) -> None:
        self.server = server
        self.url = url
        self.secrets = terms.mask.passing()
        """What was given or made for it: tokens, codes, verifiers, client secrets."""
        self._terms = terms
        self._reach: Reach | None = None

    def saw_peer(self, address: str) -> None:
        """Know that the definition's host answered from this address, whatever its name resolves to later."""
        self._narrow(reach_of(address))

    async def get(self, url: str, what: str) -> Fetched:
        """Return what a GET of the URL answers; ``what`` is our own name for it, for the reasons.

        Redirects within the origin are followed.

        Raises:
            OAuthMetadataInvalid: the URL is not one that may be fetched, or the answer is none that may be read.
            ServerUnavailable: there is no answer.
        """
        return await self._fetch("GET", url, what)

    async def post(self, url: str, what: str, *, body: str, headers: Mapping[str, str]) -> Fetched:
        """Return what a POST of the body answers; no redirect is followed.

        Raises:
            OAuthMetadataInvalid: as for ``get``.
            ServerUnavailable: there is no answer.
        """
        return await self._fetch("POST", url, what, body=body, headers=headers)

    async def _fetch(
        self,
        method: str,
        url: str,
        what: str,
        *,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        try:
            with anyio.fail_after(TOTAL_S):
                return await self._followed(method, url, what, body, headers or {})
        except TimeoutError:
            raise self._unavailable(f"{what} did not answer within {TOTAL_S:.0f} seconds") from None

    async def _followed(
        self, method: str, url: str, what: str, body: str | None, headers: Mapping[str, str]
    ) -> Fetched:
        for _ in range(REDIRECTS_MAX + 1):
            target = self._judged_url(url, what)
            answer = await self._exchanged(method, target, what, body, headers)
            if not isinstance(answer, str):
                return answer
            try:
                url = urljoin(str(target), answer)
            except ValueError:
                raise self._invalid(f"{what} redirects to what is no URL") from None
            location = self._judged_url(url, what)
            if method != "GET" or _origin(location) != _origin(target):
                raise self._invalid(f"{what} redirects to where no request may follow")
        raise self._invalid(f"{what} redirects without end")

    def _judged_url(self, url: str, what: str) -> httpx2.URL:
        """Return the URL where its form is one that may be fetched."""
        if endpoint_fault(url) is not None:
            raise self._invalid(f"the URL of {what} is not https, nor http of this machine")
        try:
            target = httpx2.URL(url)
            host = target.host  # read here: a host in punycode is decoded only now, and need not be any
        except (httpx2.InvalidURL, ValueError):
            raise self._invalid(f"the URL of {what} cannot be read") from None
        if is_legacy_number(host):
            raise self._invalid(f"the URL of {what} has a number for a host")
        return target

    async def _exchanged(
        self, method: str, target: httpx2.URL, what: str, body: str | None, headers: Mapping[str, str]
    ) -> Fetched | str:
        """Return the answer, or where it redirects to."""
        addresses = await self._judged_addresses(target, what)
        if self._terms.proxy is not None:
            addresses = (target.host,)  # it resolves for itself; what it may reach has been judged
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._sent(method, target, address, what, body, headers)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except httpx2.TransportError as error:
                raise self._unavailable(f"{what} cannot be reached: {_cause(error)}") from None
        raise self._unavailable(f"{what} cannot be reached: {_cause(failure)}") from None

    async def _sent(
        self,
        method: str,
        target: httpx2.URL,
        address: str,
        what: str,
        body: str | None,
        headers: Mapping[str, str],
    ) -> Fetched | str:
        """Send one request to this very address."""
        transport = httpx2.AsyncHTTPTransport(
            verify=self._terms.tls, trust_env=False, proxy=self._terms.proxy
        )
        timeout = httpx2.Timeout(None, connect=CONNECT_S)
        async with (
            httpx2.AsyncClient(transport=transport, trust_env=False, timeout=timeout) as client,
            client.stream(
                method,
                target.copy_with(host=address),
                content=body,
                headers={
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": user_agent(),
                    **headers,
                    "Host": target.netloc.decode("ascii"),
                },
                extensions={"sni_hostname": target.raw_host.decode("ascii")},
            ) as response,
        ):
            location = response.headers.get("Location")
            if response.is_redirect and location:
                return location
            return Fetched(response.status_code, _document(await self._body(response, what)))

    async def _body(self, response: httpx2.Response, what: str) -> bytes:
        """Return the body as it was sent: we asked for no encoding, and what has one is no JSON."""
        chunks, size = list[bytes](), 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > BODY_MAX:
                raise self._invalid(f"{what} answers with more than {BODY_MAX} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    async def _judged_addresses(self, target: httpx2.URL, what: str) -> Sequence[str]:
        """Return the addresses of the URL's host that may be connected to, at least one.

        Raises:
            OAuthMetadataInvalid: there are addresses, but none that may.
            ServerUnavailable: there are none.
        """
        host = target.raw_host.decode("ascii")
        if self._terms.proxy is not None and self._terms.rule.lists(host):
            return (host,)
        try:
            found = await self._addresses(host, target.port)
        except OSError:
            raise self._unavailable(f"the host name of {what} cannot be resolved") from None
        reach = await self._home_reach()
        allowed = [
            address
            for address in found
            if self._terms.rule.allows_named(address, reach)
            and (target.scheme == "https" or reach_of(address) is Reach.LOOPBACK)
        ]
        if not allowed:
            raise self._invalid(f"the URL of {what} leads to an address more private than the server's own")
        return allowed

    async def _home_reach(self) -> Reach:
        """Return how private the definition's host is: as the most public address that it was ever seen at.

        Whoever owns its name may point it elsewhere at any time, and would gain by pointing it inwards.
        """
        try:
            found = await self._addresses(self.url.raw_host or "", self.url.port or 443)
        except OSError:
            return Reach.PUBLIC if self._reach is None else self._reach
        return self._narrow(min(reach_of(address) for address in found))

    async def _addresses(self, host: str, port: int | None) -> Sequence[str]:
        bare = host.strip("[]")
        if is_address(bare):
            return (bare,)
        found = await self._terms.resolve(bare, port or 443)
        if not found:
            raise OSError("no address")
        return found

    def _narrow(self, reach: Reach) -> Reach:
        self._reach = reach if self._reach is None else min(reach, self._reach)
        return self._reach

    def _invalid(self, reason: str) -> OAuthMetadataInvalid:
        return OAuthMetadataInvalid(self.server, reason)

    def _unavailable(self, reason: str) -> ServerUnavailable:
        return ServerUnavailable(self.server, "http", reason)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _cause(error: Exception | None) -> str:
    """Return, in our words, why there is no answer."""
    match error:
        case httpx2.ConnectTimeout():
            return "it does not accept the connection"
        case httpx2.ConnectError() if "certificate" in str(error).lower():
            return "certificate verification failed"
        case httpx2.ConnectError():
            return "cannot connect"
        case httpx2.ProxyError():
            return "the proxy that PLURNK_HTTP_PROXY names refused the connection"
        case httpx2.RemoteProtocolError():
            return "the answer is not HTTP"
        case _:
            return "the connection ended before the answer"


def _document(body: bytes) -> JsonObject | None:
    try:
        value = parsed_json(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
