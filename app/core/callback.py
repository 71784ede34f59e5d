"""The URL that an authorization server sent the browser back to, read once. SPEC §oauth; RFC 6749 §4.1.2, RFC 9207 §2.

It tells whether the URL is one of the redirect URL at all, and what it carries; what the carried values are worth is
judged by the attempt that waits for them.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

PARAMETERS_MAX: Final = 100
URL_MAX: Final = 32 * 1024
"""Characters of a callback URL."""
_UNREADABLE: Final = re.compile(r"[\x00-\x20\x7f-\xa0]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class CallbackError(Exception):
    """The URL is no callback of this redirect URL; says why, in our words and without a word of the URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Callback:
    """What a callback carries, decoded."""

    state: str
    code: str | None = field(default=None, repr=False)
    error: str | None = None
    """As the authorization server wrote it: never shown before ``known_error`` has judged it."""
    iss: str | None = None


def read_callback(callback_url: str, redirect_url: str) -> Callback:
    """Return what the callback carries; an empty value counts as absent, as RFC 6749 §3.1 has it.

    Scheme, host, port and path must be the redirect URL's own, as browsers write them, and so must the query that it
    has itself. A callback with neither code nor error, or with both, is returned: its ``state`` may still be ours.

    Raises:
        CallbackError: it is another URL or too long, has a fragment or a parameter twice, cannot be decoded, or has no
            ``state``.
    """
    if len(callback_url) > URL_MAX:
        raise CallbackError("it is too long for a URL")
    callback, redirect = _split(callback_url.strip()), _split(redirect_url)
    if "#" in callback_url:
        raise CallbackError("it has a fragment")
    if _place(callback) != _place(redirect):
        raise CallbackError("it is not a URL of the definition's redirectUrl")
    given = _answer(callback, redirect)
    if not given.get("state"):
        raise CallbackError("it has no state")
    return Callback(
        state=given["state"],
        code=given.get("code") or None,
        error=given.get("error") or None,
        iss=given.get("iss") or None,
    )


def _split(url: str) -> SplitResult:
    if _UNREADABLE.search(url):
        raise CallbackError("it is not a URL")
    try:
        parts = urlsplit(url)
        _ = parts.port  # judged when it is read
    except ValueError:
        raise CallbackError("it is not a URL") from None
    return parts


def _place(parts: SplitResult) -> tuple[str, str, int | None, str, bool]:
    port = _DEFAULT_PORTS.get(parts.scheme) if parts.port is None else parts.port
    return parts.scheme, parts.hostname or "", port, parts.path or "/", "@" in parts.netloc


def _answer(callback: SplitResult, redirect: SplitResult) -> dict[str, str]:
    """Return the parameters that the authorization server added to the redirect URL's own query."""
    own, added = _pairs(redirect.query), _pairs(callback.query)
    for pair in own:
        if pair not in added:
            raise CallbackError("it lacks the query of the definition's redirectUrl")
        added.remove(pair)
    names = Counter([name for name, _ in added])
    if any(count > 1 for count in names.values()) or not names.keys().isdisjoint(name for name, _ in own):
        raise CallbackError("it has a parameter twice")
    return dict(added)


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise CallbackError("its query cannot be decoded") from None
