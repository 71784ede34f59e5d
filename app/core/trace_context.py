"""A caller's W3C trace context, judged before it is passed on. SPEC §observe; W3C Trace Context Level 1 §3.

What breaks the format counts as absent: a trace is never a reason to refuse a request.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

TRACESTATE_MAX: Final = 512
"""Characters of ``tracestate`` that are passed on; a longer one is dropped."""
MEMBERS_MAX: Final = 32

_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where in which trace the caller stands."""

    traceparent: str
    tracestate: str | None = None

    def carrier(self) -> Mapping[str, str]:
        """Return it as the members of ``_meta``. MCP 2026-07-28 basic/index."""
        carrier = {"traceparent": self.traceparent}
        return carrier if self.tracestate is None else {**carrier, "tracestate": self.tracestate}


def parse(traceparents: Sequence[str], tracestates: Sequence[str]) -> TraceContext | None:
    """Return the context that a request's headers give, None where they give none.

    Of a version that is not known yet only the parts of version 00 are read, as §3.2.4 asks.
    """
    if len(traceparents) != 1:
        return None
    given = traceparents[0].strip(" \t")
    found = _PARENT.fullmatch(given)
    if found is None or (found[1] == "00" and found[2] is not None):
        return None
    return TraceContext(f"00{given[2:55]}", _tracestate(",".join(tracestates)))


def _tracestate(given: str) -> str | None:
    """Return the list where it is one."""
    members = [member for each in given.split(",") if (member := each.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    written = ",".join(members)
    is_list = 0 < len(members) <= MEMBERS_MAX and len(keys) == len(members)
    is_list = is_list and len(written) <= TRACESTATE_MAX and all(map(_MEMBER.fullmatch, members))
    return written if is_list else None
