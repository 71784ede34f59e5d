"""JSON Schema validation of arguments, answers and results; no schema is ever fetched. SPEC §calls, §limits.

Dialects: 2020-12 (also without ``$schema``), 2019-09, draft-07, -06 and -04; any other is refused. References
lead within the document or to those meta-schemas; a schema with any other reference is refused rather than
taken as permissive. ``format`` is an annotation. MCP 2026-07-28 basic/index, JSON Schema Usage. What bounds
the time is in ``schema_costs``; how an error is told is in ``schema_errors``.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import jsonschema_rs
import orjson

from app.core.json_value import Json, JsonObject
from app.core.schema_costs import (
    BACKTRACK_MAX,
    PATTERN_SIZE_MAX,
    VALUE_DEPTH_MAX,
    WORK_MAX,
    Budget,
    Costs,
    costly_part,
)
from app.core.schema_errors import Error, explain
from app.core.schema_keywords import is_supported_dialect
from app.core.schema_work import CircleInPlace, Work, work_of

DEPTH_MAX: Final = 64
NODES_MAX: Final = 10_000
"""Levels and JSON values of a schema: the defaults of ``PLURNK_MAX_SCHEMA_DEPTH`` and ``…_NODES``."""

_CACHED_MAX = 512
_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_MAX, size_limit=PATTERN_SIZE_MAX)


class SchemaInvalid(Exception):
    """A schema that cannot be used: ``reason`` is a stable code, ``detail`` a phrase without remote text."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A validator and what it may spend."""

    validator: jsonschema_rs.Validator
    budget: Budget


def require_usable(schema: Json, *, max_depth: int = DEPTH_MAX, max_nodes: int = NODES_MAX) -> None:
    """Return where values can be validated against the schema; nothing is kept.

    Raises:
        SchemaInvalid: ``schema-invalid``, ``schema-too-deep``, ``schema-too-large``, ``schema-too-costly``,
            ``dialect-unsupported`` or ``reference-unresolved``.
    """
    known = _required_dialect(schema)
    if _is_plain(known, max_depth=max_depth, max_nodes=max_nodes):
        _validator(known)
    else:
        _compile(known, max_depth=max_depth, max_nodes=max_nodes)


def validate(schema: bytes | JsonObject, value: Json) -> list[Error]:
    """Return where and why the value breaks the schema, as JSON Pointers and phrases; empty where it fits.

    At most 20 errors, none of which quotes the value. The compiled validators of the last 512 schemas are
    kept.

    Raises:
        SchemaInvalid: the schema cannot be used.
    """
    raw = schema if isinstance(schema, bytes) else orjson.dumps(schema)
    compiled = _compiled(raw)
    excess = compiled.budget.excess(value)
    if excess is not None:
        return [("", excess)]
    if compiled.validator.is_valid(value):
        return []
    return explain(orjson.loads(raw), value, nodes=compiled.budget.nodes, patterns=_PATTERNS)


@lru_cache(maxsize=_CACHED_MAX)
def _compiled(raw: bytes) -> _Compiled:
    return _compile(_required_dialect(orjson.loads(raw)), max_depth=VALUE_DEPTH_MAX, max_nodes=len(raw))


def _compile(schema: JsonObject, *, max_depth: int, max_nodes: int) -> _Compiled:
    costs = _counted(schema, max_depth=max_depth, max_nodes=max_nodes)
    part = costly_part(schema, costs)
    if part is not None:
        raise SchemaInvalid("schema-too-costly", part)
    return _Compiled(_validator(schema), Budget.of(costs, _bounded_work(schema)))


def _bounded_work(schema: JsonObject) -> Work:
    try:
        work = work_of(schema)
    except CircleInPlace:
        raise SchemaInvalid("schema-too-costly", "its references lead in a circle") from None
    if work.nodes > WORK_MAX:
        raise SchemaInvalid("schema-too-costly", "its references multiply too much")
    return work


def _required_dialect(schema: Json) -> JsonObject:
    if not isinstance(schema, dict):
        raise SchemaInvalid("schema-invalid", "a schema is an object")
    if not is_supported_dialect(schema):
        raise SchemaInvalid("dialect-unsupported", "its $schema is not among the dialects supported here")
    return schema


def _is_plain(schema: JsonObject, *, max_depth: int, max_nodes: int) -> bool:
    """Whether the text alone shows that nothing need be counted, which is so for most schemas."""
    try:
        text = orjson.dumps(schema)
    except TypeError:
        return False
    levels = text.count(b"{") + text.count(b"[")
    is_small = levels <= max_depth and len(text) // 2 < max_nodes
    counted = (b'"pattern', b'"unevaluated', b'ref"', b'Ref"')
    return is_small and not any(each in text for each in counted)


def _counted(schema: JsonObject, *, max_depth: int, max_nodes: int) -> Costs:
    costs = Costs()
    level: list[Json] = [schema]
    while level:
        level = costs.add_level(level)
        if costs.depth > max_depth:
            raise SchemaInvalid("schema-too-deep", f"it nests more than {max_depth} levels")
        if costs.nodes > max_nodes:
            raise SchemaInvalid("schema-too-large", f"it has more than {max_nodes} values")
    return costs


def _validator(schema: JsonObject) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema, validate_formats=False, offline=True, pattern_options=_PATTERNS
        )
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            raise SchemaInvalid(
                "reference-unresolved", "it has a reference that leads nowhere within it"
            ) from None
        raise SchemaInvalid("schema-invalid", "it is no valid JSON Schema of its dialect") from None
    except (ValueError, TypeError):
        raise SchemaInvalid("schema-invalid", "it is no valid JSON Schema of its dialect") from None
