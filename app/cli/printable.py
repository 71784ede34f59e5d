"""Makes foreign text safe for a terminal: no control character of a peer reaches it. SPEC §cli.

A tool's answer is written by a stranger; an escape sequence in it could rewrite the screen, and a change of
direction could make a proposal read as another one.
"""

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, delete, C1
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of direction
    "\ud800-\udfff]"  # lone surrogates, which cannot be encoded
)


def printable(text: str) -> str:
    """Return the text with every unsafe character written as its code, line endings as line feeds."""
    return _UNSAFE.sub(_code, text.replace("\r\n", "\n"))


def one_line(text: str, *, limit: int = 500) -> str:
    """Return the text for a cell or a sentence: safe, on one line, bounded."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _code(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
