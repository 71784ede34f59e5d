"""What is read out of a tool entry again and again: schemas, description, signature. SPEC §calls, §actions.

Keyed by the entry's bytes, so a tool is taken apart once however often it is called or listed; an entry that
changed is another key.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import orjson

from app.core.compact_bytes import compact
from app.core.descriptions import readable
from app.core.json_value import Json, JsonObject
from app.core.signatures import signature

VIEWS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class ToolView:
    """One entry of ``tools/list``, taken apart."""

    description: str
    """As it reads well; empty where the server gives none."""
    required: tuple[str, ...]
    """The names of the required arguments, in schema order."""
    signature: str
    input_schema: bytes
    """As listed, keyword for keyword."""
    output_schema: bytes | None


@lru_cache(maxsize=VIEWS_KEPT)
def tool_view(raw: bytes) -> ToolView:
    """Return the view of an entry that policy admitted."""
    entry: JsonObject = orjson.loads(raw)
    schema = cast("JsonObject", entry["inputSchema"])
    description, output = entry.get("description"), entry.get("outputSchema")
    return ToolView(
        description=readable(description) if isinstance(description, str) else "",
        required=_required(schema.get("required")),
        signature=signature(schema),
        input_schema=compact(orjson.dumps(schema)),
        output_schema=compact(orjson.dumps(output)) if isinstance(output, dict) else None,
    )


def _required(names: Json) -> tuple[str, ...]:
    return tuple(each for each in names if isinstance(each, str)) if isinstance(names, list) else ()
