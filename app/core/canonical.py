"""Canonical JSON of a value, for fingerprints that do not depend on key order. RFC 8785; SPEC §actions.

Total over what the wire lets in: where RFC 8785 has no form (integers beyond 2^53), the form is orjson's with
sorted keys, which is as deterministic and keeps different integers different.
"""

import hashlib
import re
from collections.abc import Iterable

import orjson
import rfc8785

from app.core.json_value import Json

_DIFFERENT = re.compile(rb"[0-9][.eE]|[0-9]{16}|[\xee-\xf4]|\x7f")
"""Where orjson's form may differ: floats, large integers, keys beyond U+E000 (sorted as UTF-16)."""


def canonical(value: Json) -> bytes:
    """Return the one canonical form of the value."""
    sorted_form = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if _DIFFERENT.search(sorted_form) is None:
        return sorted_form
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        return sorted_form


def revision(entries: Iterable[bytes]) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of the array of these JSON texts."""
    digest = hashlib.sha256(b"[")
    for index, entry in enumerate(entries):
        digest.update((b"," if index else b"") + canonical(orjson.loads(entry)))
    digest.update(b"]")
    return digest.hexdigest()
