"""Which addresses a server definition may lead to, judged on the very addresses that are connected to.

SPEC §security. ``AddressRule`` decides and is pure; ``JudgedResolver`` puts it between name resolution and
connecting, so that no second resolution can give another answer.

Patterns of ``PLURNK_HTTP_HOSTS`` are host names (``api.example.com``, ``*.example.com``), addresses and
networks (``10.0.0.0/8``, ``fd00::/8``). Link-local and cloud metadata addresses are refused under every
setting unless an address or network pattern lists them: a name pattern does not, or whoever owns the name
could point it there.

A URL that a *server* names is judged by ``allows_named``: it leads to nothing more private than the definition's own
URL does.
"""

import ipaddress
import re
import socket
from collections.abc import Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

METADATA: Final[frozenset[Address]] = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # most clouds; link-local anyway
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle
        "fd00:ec2::254",  # Amazon
        "fd00:ec2::23",  # Amazon, the credentials of a pod
        "fd00:c1::a9fe:a9fe",  # Oracle
        "fd00:42::42",  # Scaleway
        "fd00:a9fe:a9fe::1",  # Akamai
        "fd20:ce::254",  # Google
    )
)
"""Addresses at which clouds hand out credentials to whoever asks."""

_NAT64: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_NOT_PUBLIC: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20", "5f00::/16", "2001:db8::/32", "100::/64")
)
"""Registered as not globally reachable, which some releases of Python do not know. IANA special-purpose registries."""
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_LEGACY_NUMBER: Final = re.compile(
    r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?", re.ASCII
)


class Reach(IntEnum):
    """How private an address is, the most public first."""

    PUBLIC = 0
    PRIVATE = 1
    """Everything that is neither of the others, link-local and cloud metadata addresses included."""
    LOOPBACK = 2
    """This machine, the unspecified addresses included, which lead there."""


def reach_of(address: str) -> Reach:
    """Return how private an address is, as the socket gets it; of what is no address nothing public is assumed."""
    found = _read(address)
    return Reach.LOOPBACK if found is None else _reach(found)


class AddressNotAllowedError(OSError):
    """The rule refuses every address of a host. An OSError, because resolvers may raise nothing else."""


class AddressRule:
    """The operator's decision about the addresses of definition URLs."""

    def __init__(self, hosts: str | Sequence[str]) -> None:
        """Take ``any``, ``public`` or patterns, as ``Settings.http_hosts`` has them."""
        self._is_any = hosts == "any"
        self._is_public = hosts == "public"
        self._networks: list[Network] = []
        self._names: list[str] = []
        for pattern in () if isinstance(hosts, str) else hosts:
            try:
                self._networks.append(ipaddress.ip_network(pattern.strip("[]"), strict=False))
            except ValueError:
                self._names.append(_canonical_name(pattern))

    def allows(self, host: str, address: str) -> bool:
        """Return whether a connection for this URL host may go to this address, as the socket gets it."""
        found = _read(address)
        if found is None:
            return False
        if any(found in network for network in self._networks):
            return True
        if found.is_link_local or found in METADATA:
            return False
        if self._is_any:
            return True
        if self._is_public:
            return _is_public(found)
        return self.lists(host)

    def allows_named(self, address: str, reach: Reach) -> bool:
        """Return whether a URL that a server named may lead to this address, where its own is that private."""
        found = _read(address)
        if found is None:
            return False
        if found.is_link_local or found in METADATA:
            is_listed = any(found in network for network in self._networks)
            return is_listed and reach >= Reach.PRIVATE
        return _reach(found) <= reach

    @property
    def is_restricted(self) -> bool:
        """Whether the operator restricts more than link-local and metadata addresses."""
        return not self._is_any

    def allows_host(self, host: str) -> bool:
        """Return whether a URL host passes before it is resolved: literal addresses are judged here.

        Forms that only some resolvers read as addresses (``2130706433``, ``0x7f.1``, ``127.1``) never pass.
        """
        bare = host.strip("[]")
        if is_address(bare):
            return self.allows(bare, bare)
        return not is_legacy_number(bare)

    def lists(self, host: str) -> bool:
        """Return whether a name pattern matches the host."""
        name = _canonical_name(host)
        return any(fnmatchcase(name, pattern) for pattern in self._names)


def is_address(host: str) -> bool:
    """Return whether a URL host, without brackets, is an address and no name."""
    return _read(host) is not None


def is_legacy_number(host: str) -> bool:
    """Return whether only some resolvers read the host as an address: ``2130706433``, ``0x7f.1``, ``127.1``."""
    return not is_address(host) and _LEGACY_NUMBER.fullmatch(host) is not None


class JudgedResolver(AbstractResolver):
    """Resolves names through another resolver and lets only the allowed addresses through."""

    def __init__(self, rule: AddressRule, resolver: AbstractResolver) -> None:
        self._rule = rule
        self._resolver = resolver

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of the host.

        Raises:
            AddressNotAllowedError: it has addresses, none of which is allowed.
            OSError: it has none.
        """
        results = await self._resolver.resolve(host, port, family)
        allowed = [result for result in results if self._rule.allows(host, result["host"])]
        if results and not allowed:
            raise AddressNotAllowedError("PLURNK_HTTP_HOSTS allows none of the host's addresses")
        return allowed

    @override
    async def close(self) -> None:
        """Close the resolver behind it."""
        await self._resolver.close()


def _canonical_name(name: str) -> str:
    """Return a host name or name pattern as names are compared: lower case, without the final dot."""
    return name.strip("[]").lower().removesuffix(".")


@lru_cache(maxsize=1024)
def _read(address: str) -> Address | None:
    """Return the address that is connected to in the end, or None where the text is none; a zone is passed over."""
    try:
        return _embedded(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return None


def _reach(address: Address) -> Reach:
    if address.is_loopback or address.is_unspecified:
        return Reach.LOOPBACK
    return Reach.PUBLIC if _is_public(address) and address not in METADATA else Reach.PRIVATE


def _embedded(address: Address) -> Address:
    """Return the IPv4 address an IPv6 address stands for, on the wire or behind a gateway; else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _NAT64) or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    """Return whether the address is reachable from anywhere and meant for one host."""
    if isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address.teredo is not None):
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
