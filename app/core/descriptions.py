"""A tool's description as a model or a person reads it: clean and bounded. SPEC §addresses, §actions.

Only its form is changed: line ends, indentation that a docstring brings, what does not print. No word is.
"""

import inspect
import re
from typing import Final

DESCRIPTION_MAX: Final = 8_000
"""Characters of one description; the rest is cut off, and ``…`` says so."""
_WORD_MAX: Final = 80
"""Characters that a cut may go back for the end of a word."""
_JOINERS: Final = frozenset("\u200c\u200d")
"""They print nothing and are part of words and emoji."""
_BLANK_LINES = re.compile(r"\n{3,}")
_TRAILING = re.compile(r" +$", re.MULTILINE)


def readable(text: str, *, limit: int = DESCRIPTION_MAX) -> str:
    """Return the text without the indentation of a docstring, clean, in at most ``limit`` characters and ``…``."""
    dedented = inspect.cleandoc(clean(text[: 2 * limit]))
    whole = _BLANK_LINES.sub("\n\n", _TRAILING.sub("", dedented)).strip()
    if len(whole) <= limit:
        return f"{whole}…" if len(text) > 2 * limit else whole
    return f"{_cut(whole[:limit])}…"


def clean(text: str) -> str:
    """Return the text with LF line ends and U+FFFD for what moves the cursor, hides or reorders text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    if lines.replace("\n", "").isprintable():
        return lines
    return "".join(each if _is_shown(each) else "\ufffd" for each in lines)


def _is_shown(character: str) -> bool:
    return character.isprintable() or character == "\n" or character in _JOINERS or character == "\u00a0"


def _cut(text: str) -> str:
    """Return the text up to the end of its last whole word, where that is near."""
    end = max(text.rfind(" "), text.rfind("\n"))
    return text[:end].rstrip() if end > len(text) - _WORD_MAX else text
