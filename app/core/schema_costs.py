"""What a JSON Schema costs to compile and to apply, and the bounds of both. SPEC §calls, §limits.

The validator's work grows with schema nodes, each as often as it is applied (``schema_work``), times values, which is
bounded here; for keywords that look at all of a value, times its bytes. Patterns that look around or back take a
bounded number of steps each, schemas whose ``unevaluated…`` keywords nest are refused, and so is a value that would
take the validator's recursion down the whole stack.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

import orjson

from app.core.json_value import Json
from app.core.schema_keywords import IN_PLACE, REFERENCES, resolve, subschemas
from app.core.schema_work import Work

VALUE_DEPTH_MAX: Final = 200
"""Levels of nesting that the wire lets in."""
BACKTRACK_MAX: Final = 5_000
"""Steps of one pattern on one text, where it looks around or back; others run in linear time."""
PATTERN_SIZE_MAX: Final = 2 * 1024 * 1024

WORK_MAX: Final = 100_000_000
"""Schema nodes times values; about a second."""
_PATTERN_WORK_MAX = 200_000_000
"""Patterns times bytes of the value; about a second."""
_WHOLE_WORK_MAX = 50_000_000
"""Keywords that look at a whole value times its bytes; about a second."""
_STEPWISE_MAX = 5_000
"""Stepwise patterns times values; about a second."""
_STACK_MAX = 10_000
"""Schemas applied in place on the way down a value. The validator recurses without a limit of its own: four
times as many fit a stack of 8 MiB, twenty times as many end the process."""
_PATTERN_WEIGHT_MAX = 300_000
"""Of all patterns of a schema: characters times repetitions; some milliseconds to compile."""
_UNEVALUATED_COST_MAX = 100_000

_APPLYING = IN_PLACE | REFERENCES
"""Keywords that apply other schemas to the same value."""
_REPETITION = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_PROPERTY_CLASS = re.compile(r"\\[pP]\{")


@dataclass(slots=True)
class Costs:
    """What was counted in a schema."""

    nodes: int = 1
    """JSON values in it."""
    depth: int = 0
    """Levels of objects and arrays."""
    in_place: int = 0
    """Objects that apply others to the same value; no way through the schema visits one twice."""
    patterns: list[str] = field(default_factory=list[str])
    has_unevaluated: bool = False

    def add_level(self, level: Iterable[Json]) -> list[Json]:
        """Count one level of objects and arrays, and return the next."""
        below: list[Json] = []
        self.depth += 1
        for value in level:
            if isinstance(value, dict):
                self._add_object(value)
            children = _below(value)
            self.nodes += len(children)
            below.extend(each for each in children if isinstance(each, dict | list))
        return below

    def _add_object(self, schema: dict[str, Json]) -> None:
        pattern, patterned = schema.get("pattern"), schema.get("patternProperties")
        if isinstance(pattern, str):
            self.patterns.append(pattern)
        if isinstance(patterned, dict):
            self.patterns.extend(patterned)
        if not _APPLYING.isdisjoint(schema):
            self.in_place += 1
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            self.has_unevaluated = True


@dataclass(frozen=True, slots=True)
class Budget:
    """What applying a compiled schema to a value may cost."""

    nodes: int
    in_place: int
    patterns: int
    stepwise: int
    """Patterns that look around or back."""
    whole: int = 0
    """Keywords that look at the whole of a value."""
    harmless: int = field(init=False, repr=False, compare=False)
    """Bytes up to which no value can cost too much, whatever is in it."""

    def __post_init__(self) -> None:
        values = min(WORK_MAX // max(1, self.nodes), _STEPWISE_MAX // max(1, self.stepwise))
        if self.in_place * VALUE_DEPTH_MAX > _STACK_MAX:
            values = min(values, _STACK_MAX // self.in_place)
        size = min(_PATTERN_WORK_MAX // max(1, self.patterns), _WHOLE_WORK_MAX // max(1, self.whole))
        # A value of so many bytes is at most half as many values, and one.
        object.__setattr__(self, "harmless", min(size, 2 * values - 1))

    @classmethod
    def of(cls, costs: Costs, work: Work) -> "Budget":
        """Return the budget of a schema that was counted."""
        return cls(work.nodes, costs.in_place, work.patterns, work.stepwise, work.whole)

    def excess(self, value: Json) -> str | None:
        """Return why the schema is not applied to the value, as the end of a sentence; None where it is."""
        try:
            size = len(orjson.dumps(value))
        except TypeError:
            return f"must be Unicode JSON text that nests at most {VALUE_DEPTH_MAX} levels"
        if size <= self.harmless:
            return None
        bound = size // 2 + 1
        if self.patterns * size > _PATTERN_WORK_MAX:
            return "is too large to be checked against the patterns of this schema"
        if self.whole * size > _WHOLE_WORK_MAX:
            return "is too large to be checked against this schema"
        if self._may_overflow(bound) and self.in_place * _depth(value) > _STACK_MAX:
            return "nests too deep to be checked against this schema"
        if self._is_much(bound) and self._is_much(_count(value)):
            return "is too large to be checked against this schema"
        return None

    def _may_overflow(self, values: int) -> bool:
        return self.in_place * min(values, VALUE_DEPTH_MAX) > _STACK_MAX

    def _is_much(self, values: int) -> bool:
        return self.nodes * values > WORK_MAX or self.stepwise * values > _STEPWISE_MAX


def costly_part(schema: Json, costs: Costs) -> str | None:
    """Return which part of the schema would cost too much, as a phrase; None where it can be compiled."""
    if sum(map(_weight, costs.patterns)) > _PATTERN_WEIGHT_MAX:
        return "its patterns repeat too much"
    if costs.has_unevaluated and _unevaluated_cost(schema) > _UNEVALUATED_COST_MAX:
        return "its unevaluated keywords nest too much"
    return None


def _weight(pattern: str) -> int:
    """Return about how large the compiled pattern is: repetitions of groups multiply, others do not."""
    single, groups = 1, 1
    for match in _REPETITION.finditer(pattern):
        count = max(1, int(match[2] or match[1]))
        if pattern[match.start() - 1 : match.start()] == ")":
            groups = min(groups * count, _PATTERN_WEIGHT_MAX)
        else:
            single = max(single, count)
    classes = 20 if _PROPERTY_CLASS.search(pattern) else 1
    return min(len(pattern) * single * groups * classes, _PATTERN_WEIGHT_MAX + 1)


def _unevaluated_cost(schema: Json) -> int:
    try:
        return _Unevaluated(schema).cost_of(schema)
    except RecursionError:  # a chain of references longer than any honest one
        return _UNEVALUATED_COST_MAX + 1


class _Unevaluated:
    """How often schemas are looked into: ``unevaluated…`` looks twice more at all beside and below it.

    An estimate from above: a schema that is refused by it might have been cheap after all.
    """

    def __init__(self, root: Json) -> None:
        self._root = root
        self._costs: dict[int, int] = {}

    def cost_of(self, schema: Json) -> int:
        """Return the cost; references in a circle count once."""
        if not isinstance(schema, dict):
            return 1
        known = self._costs.get(id(schema))
        if known is not None:
            return known
        self._costs[id(schema)] = 1
        targets = (resolve(self._root, schema.get(keyword)) for keyword in ("$ref", "$dynamicRef"))
        below = [target for _, target in filter(None, targets)]
        below.extend(each for path, each in subschemas(schema) if path[0] not in ("$defs", "definitions"))
        factor = 3 if "unevaluatedProperties" in schema or "unevaluatedItems" in schema else 1
        cost = min(1 + factor * sum(map(self.cost_of, below)), _UNEVALUATED_COST_MAX + 1)
        self._costs[id(schema)] = cost
        return cost


def _count(value: Json) -> int:
    """Return how many values and member names there are."""
    count, waiting = 0, [value]
    while waiting:
        current = waiting.pop()
        count += 1
        if isinstance(current, list):
            waiting.extend(current)
        elif isinstance(current, dict):
            count += len(current)
            waiting.extend(current.values())
    return count


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [below for each in level for below in _below(each)]
    return depth


def _below(value: Json) -> Collection[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
