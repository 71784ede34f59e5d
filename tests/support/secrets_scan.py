"""Searches what the daemon wrote for secrets, in every form it could have taken. SPEC §references."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote


def forms(secret: str) -> dict[str, bytes]:
    """Return the shapes in which a secret could appear, by name."""
    raw = secret.encode()
    shapes = {
        "plain": raw,
        "percent-encoded": quote(secret, safe="").encode(),
        "JSON-escaped": json.dumps(secret)[1:-1].encode(),
        "UTF-16": secret.encode("utf-16-le"),
        "hexadecimal": raw.hex().encode(),
    }
    # A secret inside a longer text starts at any of three offsets of its base64.
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw)
        shapes[f"base64 at offset {offset}"] = encoded[(0, 2, 3)[offset] : (offset + len(raw)) * 8 // 6]
    return shapes


def leaks(secrets: Mapping[str, str], places: Iterable[Path]) -> list[str]:
    """Return one line for each form of each secret found in these files and directories."""
    found: list[str] = []
    for path in (file for place in places for file in ([place] if place.is_file() else place.rglob("*"))):
        if not path.is_file():
            continue
        content = path.read_bytes()
        found += leaks_in(secrets, content, where=str(path))
    return found


def leaks_in(secrets: Mapping[str, str], content: bytes, *, where: str) -> list[str]:
    """Return one line for each form of each secret found in the content."""
    return [
        f"{name} ({form}) in {where}"
        for name, secret in secrets.items()
        for form, shape in forms(secret).items()
        if shape in content
    ]
