"""Scope names in texts: split, joined in one order, each once. RFC 6749 §3.3, SPEC §oauth."""

import re
from collections.abc import Iterable
from typing import Final

_NAME: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def scope_names(text: str) -> tuple[str, ...]:
    """Return the scope names of a text in its order, each once; what is no scope name is left out."""
    return tuple(dict.fromkeys(name for name in text.split() if _NAME.fullmatch(name)))


def union(*scopes: Iterable[str]) -> tuple[str, ...]:
    """Return every name once, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for each in scopes for name in each))
