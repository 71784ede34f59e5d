"""How often the parts of a schema are applied to one value, references followed. SPEC §calls, §limits.

The validator applies what a reference leads to as often as one leads there: a schema of forty parts that each refer
to the next one twice is applied 2^40 times. Only where a reference leads back to a part that it stands in, the
validator remembers what it decided of an array or object that is not empty. So such a reference costs what its target
does to a value without members, and its target counts once more by itself.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from app.core.json_value import Json, JsonObject
from app.core.schema_keywords import IN_PLACE, subschemas
from app.core.schema_references import References

_IN_PLACE: Final = IN_PLACE | {"then", "else"}
_NOT_APPLIED: Final = frozenset({"$defs", "definitions", "contentSchema"})
_WHOLE: Final = ("uniqueItems", "contentMediaType", "contentEncoding")
"""Keywords that look at the whole of a value, however large."""
_VALUES: Final = frozenset({"enum", "const", "required", "dependentRequired"})
"""Keywords whose values are looked at and are no schemas."""
_STEPWISE: Final = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\\k<")
_FOREIGN_NODES: Final = 300
"""About what a meta-schema has."""


class CircleInPlace(Exception):
    """A schema applies itself to the same value again, by more than one way."""


class Work(NamedTuple):
    """What applying a schema to one value may look at."""

    nodes: int = 0
    """JSON values of schemas."""
    patterns: int = 0
    stepwise: int = 0
    """Patterns that look around or back."""
    whole: int = 0
    """Keywords that look at the whole of a value."""


def work_of(schema: JsonObject) -> Work:
    """Return what applying the schema may look at for each value within a value.

    Which references lead back hangs on the order in which the parts are looked at, which is the validator's affair:
    of two orders the dearer one counts.

    Raises:
        CircleInPlace: its references lead in circles without a step into the value.
    """
    parts = _Parts(schema)
    in_place = [[step for step in below if step[1]] for below in parts.below]
    if len(_walked(in_place, range(len(in_place)))[1]) > 1:
        raise CircleInPlace
    there, back = (_Counted(parts, is_reversed=each).total() for each in (False, True))
    return Work(*map(max, zip(there, back, strict=True)))


def _sum(works: Iterable[Work]) -> Work:
    return Work(*map(sum, zip(*works, strict=True)))


class _Parts:
    """The parts of a schema that are applied, by number, the whole being 0."""

    def __init__(self, root: JsonObject) -> None:
        self._references = References(root)
        self._schemas: list[JsonObject] = [root]
        self._known = {id(root): 0}
        self.below: list[list[tuple[int, bool]]] = []
        """To each part those that it applies, and whether that is to the same value."""
        self.own: list[Work] = []
        """What each part has of its own."""
        while len(self.below) < len(self._schemas):  # They grow while they are looked at.
            schema = self._schemas[len(self.below)]
            targets = [*self._references.of(schema)]
            self.below.append([*self._applied(schema, targets)])
            self.own.append(_own(schema, foreign=targets.count(None)))

    def _applied(self, schema: JsonObject, targets: list[Json]) -> Iterator[tuple[int, bool]]:
        for path, each in subschemas(schema):
            if isinstance(each, dict) and path[0] not in _NOT_APPLIED:
                yield self._number(each), path[0] in _IN_PLACE
        for target in targets:
            if isinstance(target, dict):
                yield self._number(target), True
            elif target is None and self._references.is_dynamic:
                yield 0, True  # A meta-schema may lead back into this one.

    def _number(self, schema: JsonObject) -> int:
        number = self._known.setdefault(id(schema), len(self._schemas))
        if number == len(self._schemas):
            self._schemas.append(schema)
        return number


class _Counted:
    """One walk through the parts, each after all that it leads to but those that it stands in."""

    def __init__(self, parts: _Parts, *, is_reversed: bool) -> None:
        self._parts = parts
        self._below = [each[::-1] for each in parts.below] if is_reversed else parts.below
        self._order, self._back = _walked(self._below, [0])

    def total(self) -> Work:
        """Return the work of the whole and, once each, of what references lead back to."""
        in_place = self._works(is_in_place=True, again={})
        whole = self._works(is_in_place=False, again=in_place)
        return _sum([whole[0], *(whole[to] for to in {to for _, to in self._back})])

    def _works(self, *, is_in_place: bool, again: dict[int, Work]) -> dict[int, Work]:
        """Return the work of each part, on a value without members or on any; ``again`` is that of leading back."""
        works: dict[int, Work] = {}
        for part in self._order:
            summed = [self._parts.own[part]]
            for to, stays in self._below[part]:
                if (part, to) not in self._back:
                    summed += [works[to]] if stays or not is_in_place else []
                elif to in again:
                    summed.append(again[to])
            works[part] = _sum(summed)
        return works


def _walked(
    below: list[list[tuple[int, bool]]], begins: Iterable[int]
) -> tuple[list[int], set[tuple[int, int]]]:
    """Return the parts, each after all that it leads to, and the steps that lead to a part which is not done yet."""
    begun, done = set[int](), set[int]()
    order: list[int] = []
    back: set[tuple[int, int]] = set()
    for begin in begins:
        path = [] if begin in begun else [(begin, iter(below[begin]))]
        begun.add(begin)
        while path:
            part, rest = path[-1]
            to = next(rest, None)
            if to is None:
                path.pop()
                done.add(part)
                order.append(part)
            elif to[0] not in begun:
                begun.add(to[0])
                path.append((to[0], iter(below[to[0]])))
            elif to[0] not in done:
                back.add((part, to[0]))
    return order, back


def _own(schema: JsonObject, *, foreign: int) -> Work:
    nodes = 1 + sum(_size(value, is_deep=keyword in _VALUES) for keyword, value in schema.items())
    patterns: list[str] = [pattern] if isinstance(pattern := schema.get("pattern"), str) else []
    if isinstance(patterned := schema.get("patternProperties"), dict):
        patterns.extend(patterned)
    stepwise = sum(1 for each in patterns if _STEPWISE.search(each))
    whole = sum(1 for keyword in _WHOLE if schema.get(keyword))
    return Work(nodes + _FOREIGN_NODES * foreign, len(patterns), stepwise, whole)


def _size(value: Json, *, is_deep: bool) -> int:
    """Return how many values a keyword's own has; schemas below are counted where they are applied."""
    if not isinstance(value, dict | list):
        return 1
    if not is_deep:
        return 1 + len(value)
    size, waiting = 0, [value]
    while waiting:
        current = waiting.pop()
        size += 1 + len(current)
        below = current.values() if isinstance(current, dict) else current
        waiting.extend(each for each in below if isinstance(each, dict | list))
    return size
