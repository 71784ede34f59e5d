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

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
_OTHER_NUMBER = re.compile(rb"[0-9][.eE]|[0-9]{16}")
"""Floats and large integers, which orjson may write differently."""
_OTHER_ORDER = re.compile(rb"[\xee-\xf4]")
"""Characters from U+E000 on, by which keys sort differently as UTF-16 than as UTF-8."""


def canonical(value: Json) -> bytes:
    """Return the one canonical form of the value."""
    sorted_form = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if _is_canonical(sorted_form):
        return sorted_form
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        return sorted_form


def _is_canonical(sorted_form: bytes) -> bool:
    """Whether orjson's form is surely that of RFC 8785, which is much slower to ask."""
    if _OTHER_ORDER.search(sorted_form):
        return False
    if not _OTHER_NUMBER.search(sorted_form):
        return True
    return not _OTHER_NUMBER.search(_STRING.sub(b"", sorted_form))


def revision(canonical_entries: Iterable[bytes]) -> str:
    """Return the SHA-256, in hex, of the array of these texts, each the canonical JSON of its value."""
    digest = hashlib.sha256(b"[")
    for index, entry in enumerate(canonical_entries):
        digest.update(b"," + entry if index else entry)
    digest.update(b"]")
    return digest.hexdigest()
