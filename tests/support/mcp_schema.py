"""The specification's own JSON Schema of revision 2026-07-28, as a judge of bytes. MCP 2026-07-28 schema."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).parent / "schemas" / "mcp-2026-07-28.schema.json"


@cache
def _document() -> dict[str, Any]:
    return json.loads(SCHEMA.read_text())


def faults(definition: str, value: Any) -> list[str]:
    """Return what is wrong with a value, judged as one of the schema's definitions."""
    schema = {"$ref": f"#/$defs/{definition}", "$defs": _document()["$defs"]}
    return [
        f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)
    ]
