"""Rules for single texts of a definition: what is wrong with one, its pattern in a schema. SPEC §definition.

A fault is the end of a sentence about the field ("must be …") and never quotes the text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from app.core.names import RESERVED_SERVER_NAMES, server_name_fault
from app.core.reference_syntax import (
    COMPLETE_PATTERN,
    SYNTAX_PATTERN,
    WITHOUT_PATTERN,
    is_complete,
    syntax_fault,
)

Check = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class TextRule:
    """What one text must be."""

    description: str
    fault: Check
    """What is wrong with a text, or None."""
    pattern: str
    """ECMA 262; every good text matches."""
    is_exact: bool = True
    """Whether every matching text is also good; else the schema says less than the parser."""


NO_REFERENCE = "must not contain ${: references are not expanded here"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::(?P<port>[0-9]{1,5}))?")
_URL_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\"<>]")
_HOST_CHARACTERS = re.compile(r"[\w.-]+")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")

TRANSPORT_HEADERS = frozenset(
    {
        "accept",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that frame a request or that the protocol gives a meaning; a definition cannot set one."""
TRANSPORT_HEADER_PREFIX = "mcp-param-"


def lone_surrogate_fault(text: str) -> str | None:
    """Return a fault where the text cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "must be Unicode text: it contains a lone surrogate"
    return None


def control_fault(text: str) -> str | None:
    """Return a fault where the text could split a header. RFC 9110 §5.5."""
    return "contains a control character" if _CONTROL.search(text) else lone_surrogate_fault(text)


def _without_reference(text: str) -> str | None:
    return NO_REFERENCE if "${" in text else None


def _command(text: str) -> str | None:
    if not text:
        return "must not be empty: it is one exact executable"
    return _without_reference(text)


def _environment_name(text: str) -> str | None:
    if not text:
        return "must not have an empty name"
    if "=" in text:
        return "must not have '=' in its name"
    return _without_reference(text)


def _header_name(text: str) -> str | None:
    if "${" in text:
        return NO_REFERENCE
    if not _HEADER_NAME.fullmatch(text):
        return "must have a name of letters, digits and !#$%&'*+-.^_`|~ only"
    if text.lower() in TRANSPORT_HEADERS or text.lower().startswith(TRANSPORT_HEADER_PREFIX):
        return "is a header that the transport itself sets or never sends"
    return None


def _header_value(text: str) -> str | None:
    if _CONTROL.search(text):
        return "must not contain control characters"
    return syntax_fault(text)


def _directory(text: str) -> str | None:
    return syntax_fault(text) if text else "must not be empty"


def _credential(text: str) -> str | None:
    if is_complete(text):
        return None
    return "must be one complete ${NAME} reference and nothing else: a secret never stands in a definition"


def _client_id(text: str) -> str | None:
    if not text:
        return "must not be empty"
    return "must not contain control characters" if _CONTROL.search(text) else _without_reference(text)


def _scope(text: str) -> str | None:
    if "${" in text:
        return NO_REFERENCE
    return None if _SCOPE.fullmatch(text) else "must be scope names separated by single blanks"


def _server_url(text: str) -> str | None:
    parsed = _parse_url(text)
    return parsed if isinstance(parsed, str) else None


def endpoint_fault(text: str) -> str | None:
    """Return what is wrong with the URL of an OAuth endpoint or redirect: https, or http of this machine."""
    parsed = _parse_url(text)
    if isinstance(parsed, str):
        return parsed
    return _https_or_loopback(parsed)


def _client_metadata_url(text: str) -> str | None:
    parsed = _parse_url(text)
    if isinstance(parsed, str):
        return parsed
    if parsed.scheme != "https":
        return "must be an https URL"
    if parsed.path in {"", "/"}:
        return "must be an https URL with a path"
    if {".", ".."} & set(parsed.path.split("/")):
        return "must not have '.' or '..' as a path segment"
    return None


def issuer_fault(text: str) -> str | None:
    """Return what is wrong with an issuer identifier. RFC 8414 §2."""
    parsed = _parse_url(text)
    if isinstance(parsed, str):
        return parsed
    if "?" in text:
        return "must not have a query"
    return _https_or_loopback(parsed)


def _https_or_loopback(parsed: SplitResult) -> str | None:
    if parsed.scheme == "https" or is_loopback_host(parsed.hostname or ""):
        return None
    return "must be an https URL, or an http URL of this machine (localhost, 127.0.0.1, [::1])"


def is_loopback_host(host: str) -> bool:
    """Whether a host name or address literal, without brackets, means this machine by itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _parse_url(text: str) -> SplitResult | str:
    """Return the parts of an http(s) URL that has neither user information nor a fragment, or the fault."""
    if "${" in text:
        return NO_REFERENCE
    if _URL_FORBIDDEN.search(text):
        return "must be a URL without blanks, control characters, quotes and backslashes"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "must be an http or https URL"
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return "must be an http or https URL"
    if "@" in parts.netloc:
        return "must not contain user information: use authorization or a header with a ${NAME} reference"
    if "#" in text:
        return "must not contain a fragment"
    return _authority_fault(parts.netloc) or parts


def _authority_fault(netloc: str) -> str | None:
    authority = _AUTHORITY.fullmatch(netloc)
    if authority is None or not _is_host(authority["host"]):
        return "must name a host"
    if authority["port"] is not None and not 0 < int(authority["port"]) < 65536:
        return "must have a port from 1 to 65535, or none"
    return None


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except AddressValueError:
            return False
        return True
    if len(host) > 253 or not _HOST_CHARACTERS.fullmatch(host):
        return False
    try:
        host.removesuffix(".").encode("idna")
    except UnicodeError:
        return False
    return host.strip(".") != ""


def _in_any_case(word: str) -> str:
    """Return a pattern for the word whatever its case; ECMA 262 has no inline flag."""
    return "".join(
        f"[{letter.upper()}{letter}]" if letter.isalpha() else re.escape(letter) for letter in word
    )


AUTHORIZATION_PATTERN = f"^{_in_any_case('authorization')}$"
_URL_TAIL = r"[^@/?#\\\s\u0000]+(?:[/?](?:(?!\$\{)[^#\\\s\u0000])*)?$"
_HTTP_URL = rf"^[Hh][Tt][Tt][Pp][Ss]?://{_URL_TAIL}"
_NOT_TRANSPORT = "|".join(_in_any_case(name) for name in sorted(TRANSPORT_HEADERS))

SERVER_NAME = TextRule(
    "Lower-case letters, digits and hyphens, a letter first, at most 64; not a reserved name.",
    server_name_fault,
    rf"^(?!(?:{'|'.join(sorted(RESERVED_SERVER_NAMES))})$)[a-z][a-z0-9-]{{0,63}}$",
)
COMMAND = TextRule(
    "One exact executable, blanks and all; never split, no shell.", _command, r"^(?:(?!\$\{)[^\u0000])+$"
)
ARGUMENT = TextRule("One argument; ${NAME} is expanded.", syntax_fault, SYNTAX_PATTERN)
DIRECTORY = TextRule(
    "The working directory; ${NAME} is expanded.", _directory, SYNTAX_PATTERN.replace(")*$", ")+$")
)
ENVIRONMENT_NAME = TextRule(
    "The name of an environment variable.", _environment_name, r"^(?:(?!\$\{)[^=\u0000])+$"
)
ENVIRONMENT_VALUE = TextRule(
    "The value of an environment variable; ${NAME} is expanded.", syntax_fault, SYNTAX_PATTERN
)
TOOL_NAME = TextRule("The exact name of a tool.", _without_reference, WITHOUT_PATTERN)
SERVER_URL = TextRule(
    "The http or https URL of the MCP endpoint, without user information and fragment.",
    _server_url,
    _HTTP_URL,
    is_exact=False,
)
HEADER_NAME = TextRule(
    "The name of a header that the transport does not set itself.",
    _header_name,
    rf"^(?!(?:{_NOT_TRANSPORT})$|{_in_any_case(TRANSPORT_HEADER_PREFIX)})[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
)
HEADER_VALUE = TextRule(
    "The value of a header, without control characters; ${NAME} is expanded.",
    _header_value,
    SYNTAX_PATTERN.replace(r"[^\u0000]", r"[^\u0000-\u001f\u007f-\u009f]"),
)
CREDENTIAL = TextRule("One complete ${NAME}.", _credential, COMPLETE_PATTERN)
REDIRECT_URL = TextRule(
    "Where the authorization server sends the browser: https, or http of this machine.",
    endpoint_fault,
    _HTTP_URL,
    is_exact=False,
)
CLIENT_METADATA_URL = TextRule(
    "The https URL, with a path, of the client metadata document.",
    _client_metadata_url,
    rf"^[Hh][Tt][Tt][Pp][Ss]://{_URL_TAIL}",
    is_exact=False,
)
CLIENT_ID = TextRule(
    "The client's identifier at the authorization server.",
    _client_id,
    r"^(?:(?!\$\{)[^\u0000-\u001f\u007f-\u009f])+$",
)
SCOPE = TextRule(
    "Scope names separated by single blanks.",
    _scope,
    r"^(?!.*\$\{)[\u0021\u0023-\u005b\u005d-\u007e]+(?: [\u0021\u0023-\u005b\u005d-\u007e]+)*$",
)
ISSUER = TextRule(
    "The authorization server's issuer identifier: https, or http of this machine; no query.",
    issuer_fault,
    _HTTP_URL,
    is_exact=False,
)
