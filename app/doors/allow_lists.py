"""Which Host and which Origin headers are served: two allow-lists from the settings. SPEC §security.

A web page that rebinds its own name to this machine sends that name as Host; a page of another site sends its
Origin. A literal loopback address or ``localhost`` cannot be rebound, so those are always served.
"""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from app.settings import Settings

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_REMEMBERED_MAX = 64
"""Values of the Host header that were admitted and are known again, of as many characters as a name has at most."""
_NAME_MAX = 253
_UNSPECIFIED = frozenset({"0.0.0.0", "::"})


class HostAllowList:
    """The names the daemon answers to: loopback, the bind, and what ``PLURNK_ALLOWED_HOSTS`` adds."""

    def __init__(self, settings: Settings) -> None:
        bind = settings.host.strip("[]").lower()
        names = {bind} - _UNSPECIFIED
        self._exact: set[tuple[str, str | None]] = {(name, None) for name in names}
        self._suffixes: list[str] = []
        for allowed in settings.allowed_hosts:
            self._allow(allowed.lower())
        self._remembered: set[str] = set()

    def admits(self, host: str) -> bool:
        """Return whether this value of the Host header is served."""
        if host in self._remembered:
            return True
        is_good = self._is_good(host)
        if is_good and len(host) <= _NAME_MAX and len(self._remembered) < _REMEMBERED_MAX:
            self._remembered.add(host)
        return is_good

    def _is_good(self, host: str) -> bool:
        parsed = _HOST.fullmatch(host)
        if parsed is None:
            return False
        name, port = parsed["name"].strip("[]").lower(), parsed["port"]
        if _is_loopback(name) or (name, None) in self._exact or (name, port) in self._exact:
            return True
        return any(name.endswith(suffix) for suffix in self._suffixes)

    def _allow(self, allowed: str) -> None:
        """Take up one entry: ``name``, ``name:port``, or ``*.domain`` for every name below a domain."""
        if allowed.startswith("*.") and len(allowed) > len("*."):
            self._suffixes.append(allowed.removeprefix("*"))
        elif (parsed := _HOST.fullmatch(allowed)) is not None:
            self._exact.add((parsed["name"].strip("[]"), parsed["port"]))


class OriginAllowList:
    """The web origins that may come in: those of ``PLURNK_ALLOWED_ORIGINS``, never ``null`` or ``*``."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = {parsed for origin in origins if (parsed := _parsed_origin(origin)) is not None}

    def admits(self, origin: str) -> bool:
        """Return whether this value of the Origin header may use the daemon."""
        parsed = _parsed_origin(origin)
        return parsed is not None and parsed in self._origins


@lru_cache(maxsize=64)
def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _parsed_origin(origin: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of a serialized origin, or None where it is none. RFC 6454 §6.2."""
    if not _ORIGIN.fullmatch(origin):
        return None
    try:
        split = urlsplit(origin)
        port = split.port
    except ValueError:
        return None
    scheme = split.scheme.lower()
    return scheme, (split.hostname or "").lower(), port if port is not None else _DEFAULT_PORTS.get(scheme)
