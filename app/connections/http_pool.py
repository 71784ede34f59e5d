"""The one HTTP client that every connection shares: pool, TLS, proxy and address rule. SPEC §connection.

It keeps no cookies, reads no proxy from the environment, follows no redirect and has no timeout of its own.
"""

import asyncio
import socket
import ssl
from typing import Final
from weakref import WeakValueDictionary

from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.resolver import ThreadedResolver
from multidict import CIMultiDict
from yarl import URL

from app.connections.address_rule import AddressNotAllowedError, AddressRule, JudgedResolver
from app.connections.http_connector import BoundedConnector
from app.connections.http_exchange import Place
from app.connections.idle_connections import IdleConnections
from app.settings import Settings

KEEPALIVE_PROBES: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""When the system asks a silent peer whether it is there: after these seconds, every so many, so many times.

Nothing else would tell that the peer of a listen stream, which may be silent for days, is gone. Each system has some.
"""


class HttpPool:
    """Owns the connector and what is idle; made once a daemon, closed with it."""

    def __init__(self, settings: Settings) -> None:
        """Read the roots; nothing is opened before the first request.

        Raises:
            ValueError: ``PLURNK_CA_FILE`` has no certificates that can be read.
        """
        self._rule = AddressRule(settings.http_hosts)
        self._proxy = settings.http_proxy
        self.tls = tls_context(settings.ca_file)
        """The roots that every connection of the daemon is verified by; reading them takes a tenth of a second."""
        self._connector: BoundedConnector | None = None
        self._idle: WeakValueDictionary[ConnectionKey, IdleConnections] = WeakValueDictionary()
        """What is pooled, by where it leads; kept by the places that lead there."""
        self._is_closed = False

    @property
    def is_proxied(self) -> bool:
        """Whether a proxy stands between us and every server."""
        return self._proxy is not None

    def place(self, url: URL, headers: CIMultiDict[str]) -> Place:
        """Return the place of this URL, whose every request has these headers; opens nothing.

        Raises:
            RuntimeError: the pool is closed.
        """
        if self._is_closed:
            raise RuntimeError("the HTTP pool is closed")
        loop = asyncio.get_running_loop()
        if self._connector is None:
            resolver = ThreadedResolver()
            self._connector = BoundedConnector(
                # A proxy is the operator's own address; what it may reach was judged by require_allowed.
                resolver=resolver if self._proxy else JudgedResolver(self._rule, resolver),
                socket_factory=probed_socket,
                limit=0,
                ssl=self.tls,
            )
        proxy = URL(self._proxy) if self._proxy else None
        request = ClientRequest("POST", url, headers=headers, loop=loop, proxy=proxy)
        key = request.connection_key
        if (idle := self._idle.get(key)) is None:
            idle = self._idle[key] = IdleConnections()
        return Place(request, self._connector, idle)

    async def require_allowed(self, url: URL) -> None:
        """Return where the URL's host may be connected to, as far as that shows before connecting.

        Names are judged when they are connected to; behind a proxy, which resolves them out of our sight,
        they are resolved and judged here.

        Raises:
            AddressNotAllowedError: it may not.
        """
        host = url.raw_host or ""
        if not self._rule.allows_host(host):
            raise AddressNotAllowedError("PLURNK_HTTP_HOSTS does not allow the address")
        if self._proxy and self._rule.is_restricted and not self._rule.lists(host):
            try:
                await JudgedResolver(self._rule, ThreadedResolver()).resolve(host, 0, socket.AF_UNSPEC)
            except OSError:
                raise AddressNotAllowedError("PLURNK_HTTP_HOSTS does not allow the address") from None

    async def close(self) -> None:
        """Close every pooled connection for good; idempotent."""
        self._is_closed = True
        connector, self._connector = self._connector, None
        try:
            if connector is not None:
                await connector.close()
        finally:
            for idle in list(self._idle.values()):
                idle.close()


def probed_socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """Return a socket for the address whose peer cannot vanish without being noticed."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE_PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return a verifying context with the system's roots and those of the file."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))  # as both HTTP clients that share it would
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError):
            raise ValueError("PLURNK_CA_FILE: no PEM certificates can be read from this file") from None
    return context
