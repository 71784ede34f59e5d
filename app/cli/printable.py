"""Makes foreign text safe for a terminal: no control character of a peer reaches it. SPEC §cli.

A tool's answer is written by a stranger; an escape sequence in it could rewrite the screen, and a change of
direction, or what shows nothing, could make a proposal read as another one.
"""

import json
import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of direction
    "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # what shows nothing
    "\u2028\u2029\ud800-\udfff]"  # other line ends; lone surrogates, which cannot be encoded
)


def printable(text: str) -> str:
    """Return the text with every unsafe character written as its code, line endings as line feeds."""
    return _UNSAFE.sub(_code, text.replace("\r\n", "\n"))


def printable_json(text: str) -> str:
    """Return JSON of the same value without an unsafe character: in JSON they stand in strings alone, or nowhere."""
    return _UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text)


def one_line(text: str, *, limit: int = 500) -> str:
    """Return the text for a cell or a sentence: safe, on one line, bounded."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _code(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
