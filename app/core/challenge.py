"""The Bearer challenge of a ``WWW-Authenticate`` header. SPEC §oauth; RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1.

A server writes it, so the parser takes what it can read and never fails; whoever uses a value judges it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.core.scope_names import scope_names


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """What a server says of the token it wants; every part may be missing."""

    resource_metadata: tuple[str, ...] = ()
    """Where its protected resource metadata is said to be, the likeliest place first."""
    scope: tuple[str, ...] | None = None
    """The scopes the refused request needs, in the server's order, each once; None where it names none."""
    error: str | None = None

    @property
    def wants_scope(self) -> bool:
        """Whether the token is good and grants too little. RFC 6750 §3.1."""
        return self.error == "insufficient_scope"


PLACES_MAX: Final = 4
"""Places of metadata that one refusal may name."""
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 a token of RFC 9110 §5.6.2, no secret
_BETWEEN: Final = re.compile(r"[\s,]*")
_PARAMETER: Final = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))', re.DOTALL)
_SCHEME: Final = re.compile(rf"({_TOKEN})(?=[\s,]|$)")
_UNREADABLE: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|[^",])*', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def parse_challenge(header: str | None) -> BearerChallenge:
    """Return the first Bearer challenge of the header; an empty one where there is none.

    Of a parameter that is given twice the last counts. Places of metadata are taken from every Bearer challenge, and
    where one is given twice the others follow the last. Unquoted URLs are read, as careless servers write them.
    """
    bearers = [parameters for scheme, parameters in _challenges(header or "") if scheme == "bearer"]
    if not bearers:
        return BearerChallenge()
    named = [url for each in bearers for url in reversed(each.get("resource_metadata", [])) if url]
    return BearerChallenge(
        resource_metadata=tuple(dict.fromkeys(named))[:PLACES_MAX],
        scope=scope_names(_last(bearers[0], "scope")) or None,
        error=_last(bearers[0], "error") or None,
    )


def _last(parameters: dict[str, list[str]], name: str) -> str:
    """Return the value that counts; an empty one where there is none."""
    return parameters.get(name, [""])[-1]


def _challenges(header: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield each challenge: its scheme and the values of its parameters by name, both in lower case."""
    scheme, parameters = "", dict[str, list[str]]()
    position = _skipped(header, 0)
    while position < len(header):
        if parameter := _PARAMETER.match(header, position):
            name, quoted, plain = parameter.groups()
            value = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(name.lower(), []).append(value)
            end = parameter.end()
        elif begun := _SCHEME.match(header, position):
            yield scheme, parameters
            scheme, parameters = begun[1].lower(), {}
            end = begun.end()
        else:
            unreadable = _UNREADABLE.match(header, position)
            end = unreadable.end() if unreadable else len(header)
        position = _skipped(header, max(end, position + 1))
    yield scheme, parameters


def _skipped(header: str, position: int) -> int:
    """Return where the next challenge or parameter begins."""
    between = _BETWEEN.match(header, position)
    return between.end() if between else position
