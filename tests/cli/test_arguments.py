"""How the words of ``call`` become a tool's arguments. SPEC §cli."""

import pytest

from app.cli.arguments import parse
from app.cli.failures import UsageFault
from app.core.json_value import Json, JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "color": {"enum": ["red", "1"]},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "items": {"type": "array"},
        "free": {},
    },
}


def read_nothing() -> bytes:
    raise AssertionError("standard input is not asked for")


def arguments(*words: str) -> JsonObject:
    return parse(words, read_input=read_nothing, schema=lambda: SCHEMA)


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "word, value",
    [
        ("text=12", {"text": "12"}),
        ("text=", {"text": ""}),
        ("text=a=b", {"text": "a=b"}),
        ("text=${HOME}", {"text": "${HOME}"}),
        ("maybe=null", {"maybe": "null"}),
        ("color=1", {"color": "1"}),
        ("count=12", {"count": 12}),
        ("count=twelve", {"count": "twelve"}),
        ("flag=true", {"flag": True}),
        ('items=["a"]', {"items": ["a"]}),
        ("free=1.5", {"free": 1.5}),
        ("free=words", {"free": "words"}),
        ("unknown=3", {"unknown": 3}),
        ('text:="12"', {"text": "12"}),
        ("text:=12", {"text": 12}),
        ("maybe:=null", {"maybe": None}),
    ],
)
def test_a_word_is_typed_by_the_tools_schema(word: str, value: dict[str, Json]) -> None:
    assert arguments(word) == value


@pytest.mark.spec("cli")
def test_one_json_object_is_taken_as_it_is_without_asking_for_the_schema() -> None:
    def schema() -> JsonObject:
        raise AssertionError("nobody needs it")

    given = '{"text": "1", "count": 2}'
    assert parse([given], read_input=read_nothing, schema=schema) == {"text": "1", "count": 2}
    assert parse(["-"], read_input=given.encode, schema=schema) == {"text": "1", "count": 2}
    assert parse(["count:=2"], read_input=read_nothing, schema=schema) == {"count": 2}
    assert parse([], read_input=read_nothing, schema=schema) == {}


def test_several_words_make_one_object() -> None:
    assert arguments("text=x", "count=2", "flag:=false") == {"text": "x", "count": 2, "flag": False}


def test_a_schema_that_is_odd_leaves_the_guess() -> None:
    assert parse(["a=1"], read_input=read_nothing, schema=lambda: {"properties": 7}) == {"a": 1}


@pytest.mark.spec("cli")
@pytest.mark.parametrize("word", ["word", "=x", ":=1", "count:=twelve", '{"a":', "{}x"])
def test_a_word_that_is_no_argument_is_a_usage_fault(word: str) -> None:
    with pytest.raises(UsageFault):
        arguments(word)


@pytest.mark.parametrize("given", [b"[1]", b"", b"nonsense", b"\xff"])
def test_an_input_that_is_no_object_is_a_usage_fault(given: bytes) -> None:
    with pytest.raises(UsageFault):
        parse(["-"], read_input=lambda: given, schema=lambda: SCHEMA)
