"""What schemas may cost: each case would stall or end the process without its bound. SPEC §calls, §limits."""

import subprocess
import sys

import pytest

from app.core.json_value import Json, JsonObject
from app.core.schema_costs import Budget, Costs
from app.core.schema_work import Work
from app.core.schemas import SchemaInvalid, require_usable, validate

pytestmark = pytest.mark.spec("limits")

STACK = ("", "nests too deep to be checked against this schema")


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = {"x": value}
    return value


def chain(links: int, *, keyword: str) -> JsonObject:
    """Return a schema in which one value is judged by so many schemas, one within the other."""
    definitions: JsonObject = {}
    for index in range(links):
        target: JsonObject = {"$ref": f"#/$defs/a{index + 1}"}
        definitions[f"a{index}"] = (
            {"not": {"not": target}} if keyword == "not" else {"anyOf": [target, {"type": "null"}]}
        )
    definitions[f"a{links}"] = {"properties": {"x": {"$ref": "#/$defs/a0"}}}
    return {"$ref": "#/$defs/a0", "$defs": definitions}


@pytest.mark.parametrize("keyword", ["anyOf", "not"])
def test_a_recursion_that_would_overflow_the_stack_is_refused(keyword: str) -> None:
    schema = chain(1000, keyword=keyword)
    require_usable(schema)
    assert validate(schema, nested(199)) == [STACK]
    assert validate(schema, nested(1)) == []


def test_the_largest_recursion_that_is_let_through_fits_the_stack() -> None:
    """In a process of its own, which would not survive an overflow."""
    program = (
        "from tests.core.test_schema_costs import chain, nested\n"
        "from app.core.schemas import validate\n"
        "for links, depth in ((49, 199), (90, 100), (990, 4), (450, 10)):\n"
        "    for keyword in ('anyOf', 'not'):\n"
        "        print(validate(chain(links, keyword=keyword), nested(depth))[:1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "[]" in done.stdout


def test_an_ordinary_recursion_is_not_refused() -> None:
    assert validate(chain(20, keyword="anyOf"), nested(150)) == []


def test_unevaluated_keywords_that_nest_are_refused() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {}}}
    for _ in range(22):
        schema = {"type": "object", "allOf": [schema], "unevaluatedProperties": False}
    with pytest.raises(SchemaInvalid) as refused:
        require_usable(schema)
    assert refused.value.reason == "schema-too-costly"
    links: JsonObject = {
        f"a{index}": {"$ref": f"#/$defs/a{index + 1}", "unevaluatedProperties": {}} for index in range(1500)
    }
    with pytest.raises(SchemaInvalid):
        require_usable({"$defs": {**links, "a1500": {}}, "$ref": "#/$defs/a0"})


def test_ordinary_unevaluated_keywords_are_not_refused() -> None:
    base: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    schema: JsonObject = {
        "type": "object",
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"$ref": "#"}}}],
        "unevaluatedProperties": False,
        "$defs": {"base": base},
    }
    assert validate(schema, {"a": "x", "b": {"a": "y"}}) == []
    assert len(validate(schema, {"a": "x", "c": 1})) == 1


@pytest.mark.parametrize(
    "pattern", ["((a{1000}){1000}){1000}", "(a{100}){300}", r"(\p{L}{1,50}){1,50}", "x{1,999999999}"]
)
def test_patterns_that_repeat_too_much_are_refused(pattern: str) -> None:
    as_keyword: JsonObject = {"pattern": pattern}
    as_name: JsonObject = {"properties": {"a": {"patternProperties": {pattern: {}}}}}
    for schema in (as_keyword, as_name):
        with pytest.raises(SchemaInvalid) as refused:
            require_usable(schema)
        assert refused.value.reason in {"schema-too-costly", "schema-invalid"}


@pytest.mark.parametrize(
    "pattern",
    [
        "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        "^[A-Z]{2,64}(-[a-z]{1,64}){0,10}$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$",
        r"^\p{L}{1,200}$",
        "^.{1,5000}$",
    ],
)
def test_ordinary_patterns_are_not_refused(pattern: str) -> None:
    require_usable({"pattern": pattern})


def test_stepwise_patterns_are_not_tried_on_thousands_of_texts() -> None:
    schema: JsonObject = {"items": {"pattern": "^(?=a)(a+)+$"}}
    texts: list[Json] = ["a" * 9]
    assert validate(schema, texts * 4_000) == []
    assert validate(schema, texts * 6_000) == [("", "is too large to be checked against this schema")]


def test_schemas_in_place_times_levels_are_bounded() -> None:
    budget = Budget(nodes=1, in_place=100, patterns=0, stepwise=0)
    assert budget.excess(nested(99)) is None
    assert budget.excess(nested(100)) == STACK[1]


def test_schema_nodes_times_values_are_bounded() -> None:
    budget = Budget(nodes=10_000, in_place=0, patterns=0, stepwise=0)
    small: list[Json] = [0]
    large: list[Json] = ["0123456789abcdef" * 2]
    assert budget.excess(small * 9_000) is None
    assert budget.excess(small * 11_000) == "is too large to be checked against this schema"
    assert budget.excess(large * 9_000) is None


def test_patterns_times_bytes_are_bounded() -> None:
    budget = Budget(nodes=1_000, in_place=0, patterns=1_000, stepwise=0)
    assert budget.excess("x" * 100_000) is None
    assert budget.excess("x" * 600_000) == "is too large to be checked against the patterns of this schema"


def test_costs_count_values_and_levels() -> None:
    costs = Costs()
    level: list[Json] = [{"a": [1, 2, {"$ref": "#"}], "pattern": "^(?!x)", "unevaluatedItems": {}}]
    while level:
        level = costs.add_level(level)
    assert costs == Costs(nodes=8, depth=3, in_place=1, patterns=["^(?!x)"], has_unevaluated=True)
    work = Work(nodes=9, patterns=3, stepwise=2, whole=4)
    assert Budget.of(costs, work) == Budget(nodes=9, in_place=1, patterns=3, stepwise=2, whole=4)


def test_keywords_that_look_at_a_whole_value_are_counted_by_its_bytes() -> None:
    budget = Budget(nodes=10, in_place=0, patterns=0, stepwise=0, whole=10)
    assert budget.excess("x" * 4_000_000) is None
    assert budget.excess("x" * 6_000_000) == "is too large to be checked against this schema"


@pytest.mark.parametrize(
    "budget, value",
    [
        (Budget(nodes=1, in_place=0, patterns=0, stepwise=2_500), [1, 1]),
        (Budget(nodes=40_000_000, in_place=0, patterns=0, stepwise=0), [1, 1]),
        (Budget(nodes=1, in_place=4_000, patterns=0, stepwise=0), [[1]]),
        (Budget(nodes=1, in_place=0, patterns=40_000_000, stepwise=0), [1, 10]),
        (Budget(nodes=1, in_place=0, patterns=0, stepwise=0, whole=9_000_000), [1, 10]),
    ],
)
def test_what_is_small_enough_to_be_let_through_uncounted_is_never_too_much(
    budget: Budget, value: Json
) -> None:
    assert budget.excess(value) is not None
    assert budget.excess(1) is None
