"""Schemas whose references multiply are refused before anything is applied. SPEC §calls, §limits."""

import pytest

from app.core.json_value import Json, JsonObject
from app.core.schema_work import CircleInPlace, Work, work_of
from app.core.schemas import SchemaInvalid, require_usable, validate

pytestmark = pytest.mark.spec("limits", "security")

SCALE = 40
"""As many doublings as would take the validator hours."""


def multiplied(keyword: str, way: str, *, returns: bool, scale: int = SCALE) -> JsonObject:
    """Return a schema of parts that each lead to the next one twice, the last one to the first below a member."""
    parts: JsonObject = {}
    for index in range(scale):
        target, again = _reference(way, index + 1), _reference(way, index + 1)
        shapes: dict[str, JsonObject] = {
            "if": {"if": target, "then": again},
            "not": {"allOf": [{"not": target}, {"not": again}]},
            "properties": {"properties": {"x": target}, "patternProperties": {"x": again}},
        }
        parts[f"a{index}"] = {**_called(way, index), **shapes.get(keyword, {keyword: [target, again]})}
    back: JsonObject = {"properties": {"x": _reference(way, 0)}} if returns else {"type": "string"}
    parts[f"a{scale}"] = {**_called(way, scale), **back}
    return {"$id": "https://x.example/", "$defs": parts, "properties": {"v": _reference(way, 0)}}


def _called(way: str, index: int) -> JsonObject:
    name: JsonObject = {"$id": f"a{index}"} if way == "id" else {}
    return {"$dynamicAnchor": f"a{index}"} if way == "dynamic" else name


def _reference(way: str, index: int) -> JsonObject:
    if way == "dynamic":
        return {"$dynamicRef": f"#a{index}"}
    return {"$ref": f"a{index}" if way == "id" else f"#/$defs/a{index}"}


@pytest.mark.parametrize("returns", [False, True], ids=["once", "in a circle"])
@pytest.mark.parametrize("way", ["pointer", "id", "dynamic"])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "if", "not", "properties"])
def test_references_that_multiply_are_refused(keyword: str, way: str, *, returns: bool) -> None:
    schema = multiplied(keyword, way, returns=returns)
    for applied in (False, True):
        with pytest.raises(SchemaInvalid) as refused:
            validate(schema, {"v": 1}) if applied else require_usable(schema)
        assert (refused.value.reason, refused.value.detail) == (
            "schema-too-costly",
            "its references multiply too much",
        )


def test_in_a_circle_a_value_without_members_is_judged_by_every_way_to_it_and_by_every_way_from_there() -> (
    None
):
    assert work_of(multiplied("allOf", "pointer", returns=True, scale=7)).nodes > 2**14
    with pytest.raises(SchemaInvalid):
        require_usable(multiplied("allOf", "pointer", returns=True, scale=14))


def _nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.parametrize("keyword", ["allOf", "oneOf", "if", "properties"])
def test_a_circle_that_is_let_through_takes_no_time(keyword: str) -> None:
    schema = multiplied(keyword, "pointer", returns=True, scale=6)
    assert validate(schema, {"v": _nested(150)}) is not None
    row: list[Json] = [{"x": 1} for _ in range(30)]
    assert validate(schema, {"v": [row, *row]}) is not None


def test_few_multiplications_count_and_are_let_through() -> None:
    few = multiplied("allOf", "pointer", returns=False, scale=5)
    assert validate(few, {"v": "text"}) == []
    assert len(validate(few, {"v": 1})) > 0
    assert work_of(multiplied("allOf", "pointer", returns=False, scale=10)).nodes > 2**10


def test_patterns_and_wholes_count_as_often_as_they_are_applied() -> None:
    part: JsonObject = {"pattern": "^(?!x)", "uniqueItems": True, "patternProperties": {"a": {}, "b": {}}}
    often: list[Json] = [{"$ref": "#/$defs/p"} for _ in range(100)]
    schema: JsonObject = {"allOf": often, "$defs": {"p": part, "unused": part}}
    work = work_of(schema)
    assert (work.patterns, work.stepwise, work.whole) == (300, 100, 100)
    assert validate(schema, "x" * 900_000) == [
        ("", "is too large to be checked against the patterns of this schema")
    ]


def test_a_tree_of_many_kinds_is_cheap() -> None:
    """What honest schemas of programs and documents look like: each kind leads to all kinds, below a member."""
    kinds: JsonObject = {
        f"k{index}": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/any"}, "all": {"items": {"$ref": "#"}}},
        }
        for index in range(20)
    }
    several: list[Json] = [{"$ref": f"#/$defs/{name}"} for name in kinds]
    schema: JsonObject = {"$ref": "#/$defs/any", "$defs": {**kinds, "any": {"anyOf": several}}}
    require_usable(schema)
    assert work_of(schema).nodes < 50_000


def test_a_circle_in_place_with_one_way_round_ends_and_with_more_is_refused() -> None:
    assert work_of({"not": {"$ref": "#"}}).nodes < 30
    with pytest.raises(CircleInPlace):
        work_of({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})
    with pytest.raises(SchemaInvalid, match="circle"):
        validate({"anyOf": [{"not": {"$ref": "#"}}, {"$ref": "#"}]}, 1)


def test_a_meta_schema_that_leads_back_is_counted_as_a_circle() -> None:
    meta: JsonObject = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert work_of({"properties": {"x": meta}}).nodes > 300
    with pytest.raises(CircleInPlace):
        work_of({"$dynamicAnchor": "meta", "allOf": [meta, dict(meta)]})


def test_plain_keywords_count_what_they_hold() -> None:
    schema: JsonObject = {"enum": [1, {"a": [2, 3]}], "required": ["a", "b"], "description": "long"}
    assert work_of(schema) == Work(nodes=1 + (3 + 2 + 3) + 3 + 1)
