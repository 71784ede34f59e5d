"""How the text of a variable becomes the value of a setting. SPEC §settings, §security.

Each reader takes what pydantic hands it before validation: text from the environment, or a value that passes
through. A fault is the end of a sentence and never quotes the text.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import orjson
from pydantic import BeforeValidator, Field

from app.core.text_rules import control_fault, is_loopback_host

_INTEGER = re.compile(r"[0-9]{1,16}", re.ASCII)
_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?|\*", re.ASCII)
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?", re.ASCII)
_HOST_PATTERN = re.compile(r"[A-Za-z0-9_.*?-]+", re.ASCII)
_HOST_HEADER = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|(?:\*\.)?[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
_ORIGIN = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII
)
_BEARER_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)

AN_ARRAY = 'must be a JSON array of strings, such as ["a", "b"]'
Check: TypeAlias = Callable[[str], str | None]


def _array(value: object, check: Check) -> object:
    """Return the strings of a JSON array, each of them checked."""
    if not isinstance(value, str):
        return value
    try:
        items: object = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise ValueError(AN_ARRAY) from None
    if not isinstance(items, list):
        raise ValueError(AN_ARRAY)  # noqa: TRY004 pydantic collects ValueErrors only
    for index, item in enumerate(cast("list[object]", items)):
        fault = check(item) if isinstance(item, str) else "must be a string"
        if fault:
            raise ValueError(f"/{index}: {fault}")
    return tuple(cast("list[str]", items))


def _checked(value: object, check: Check) -> object:
    if isinstance(value, str) and (fault := check(value)):
        raise ValueError(fault)
    return value


def _integer(value: object) -> object:
    # pydantic would also take "1_000", " 1" and "1.0", which other readers of the same variable refuse.
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise ValueError("must be a whole number in decimal digits")
        return int(value)
    return value


def _keyword(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _name_pattern_fault(text: str) -> str | None:
    return None if _NAME_PATTERN.fullmatch(text) else "must be a variable's name, PREFIX_* or *"


def _command_fault(text: str) -> str | None:
    return "must name an executable" if not text or "\0" in text else None


def _host_pattern_fault(text: str) -> str | None:
    try:
        ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        if _HOST_PATTERN.fullmatch(text) and not text.startswith("."):
            return None
        return "must be a host name, *.domain, an address or a network such as 10.0.0.0/8"
    return None


def _host_header_fault(text: str) -> str | None:
    return None if _HOST_HEADER.fullmatch(text) else "must be a host name, host:port or *.domain"


def _origin_fault(text: str) -> str | None:
    return None if _ORIGIN.fullmatch(text) else "must be an origin such as https://app.example.com"


def _token_fault(text: str) -> str | None:
    if not _BEARER_TOKEN.fullmatch(text):
        return "must consist of letters, digits and -._~+/ (RFC 6750)"
    if text != "none" and text.lower() == "none":
        return "must be 'none' in lower case, or a token"
    return None


def _bind_fault(text: str) -> str | None:
    if _HOST_NAME.fullmatch(text):
        return None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return "must be an address or a host name"
    return None


def _without_brackets(value: object) -> object:
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        return value[1:-1]
    return value


def _database_url_fault(text: str) -> str | None:
    scheme, separator, path = text.partition("://")
    if not separator:
        scheme, path = "sqlite", f"/{text}"
    if scheme not in {"sqlite", "sqlite+aiosqlite"}:
        return "must be sqlite+aiosqlite:///PATH or a path: SQLite is the only database"
    if not path.startswith("/") or path == "/" or ":memory:" in path or "mode=memory" in path:
        return "must name a file: sqlite+aiosqlite:///PATH"
    return None


def _proxy_fault(text: str) -> str | None:
    fault = "must be an http:// or https:// URL that names a host"
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return fault
    return None if is_good and not control_fault(text) and " " not in text else fault


def _hosts_rule(value: object) -> object:
    """Return ``any`` or ``public``, or the patterns of a JSON array."""
    if not isinstance(value, str):
        return value
    if value.lower() in {"any", "public"}:
        return value.lower()
    if not value.lstrip().startswith("["):
        raise ValueError("must be any, public or a JSON array of patterns")
    return _array(value, _host_pattern_fault)


def is_loopback_bind(host: str) -> bool:
    """Whether a daemon bound to this address can be reached from this machine only."""
    return is_loopback_host(host.removeprefix("[").removesuffix("]"))


def is_name_pattern_of(pattern: str, name: str) -> bool:
    """Whether a pattern of ``PLURNK_REFERENCES`` covers a variable's name."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _text(check: Check) -> BeforeValidator:
    return BeforeValidator(lambda value: _checked(value, check))


def _texts(check: Check) -> BeforeValidator:
    return BeforeValidator(lambda value: _array(value, check))


KEYWORD = BeforeValidator(_keyword)
"""Beside a ``Literal``: its words in any case."""
BindAddress: TypeAlias = Annotated[str, _text(_bind_fault), BeforeValidator(_without_brackets)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535), BeforeValidator(_integer)]
PositiveInt: TypeAlias = Annotated[int, Field(ge=1, le=2**53), BeforeValidator(_integer)]
CountOrZero: TypeAlias = Annotated[int, Field(ge=0, le=2**53), BeforeValidator(_integer)]
Token: TypeAlias = Annotated[str, _text(_token_fault)]
DatabaseUrl: TypeAlias = Annotated[str, _text(_database_url_fault)]
ProxyUrl: TypeAlias = Annotated[str, _text(_proxy_fault)]
NamePatterns: TypeAlias = Annotated[tuple[str, ...], _texts(_name_pattern_fault)]
Commands: TypeAlias = Annotated[tuple[str, ...], _texts(_command_fault)]
HostHeaders: TypeAlias = Annotated[tuple[str, ...], _texts(_host_header_fault)]
Origins: TypeAlias = Annotated[tuple[str, ...], _texts(_origin_fault)]
HostsRule: TypeAlias = Annotated[Literal["any", "public"] | tuple[str, ...], BeforeValidator(_hosts_rule)]
