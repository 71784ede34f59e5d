"""Pages of lists: strict envelopes, entries judged one by one. SPEC §prepare."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog import Entry, Withheld
from app.core.json_value import Json, JsonObject
from app.core.listing import CursorMalformed, ListMissing, Page, read_page

GOOD: JsonObject = {"name": "good", "inputSchema": {"type": "object"}}
MEMBERS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}

pytestmark = pytest.mark.spec("prepare")


def tools(*entries: Json) -> Page:
    return read_page("tools/list", {"tools": list(entries)})


def test_entries_keep_order_and_keys_as_the_server_sent_them() -> None:
    entry: JsonObject = {
        "title": "T",
        "x-own": {"z": 1, "a": [1.0, None]},
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "if": {},
        },
        "name": "b",
    }
    page = tools(entry, GOOD)
    assert page == Page((Entry("b", orjson.dumps(entry)), Entry("good", orjson.dumps(GOOD))), (), None)
    assert list(json.loads(page.entries[0].raw)) == ["title", "x-own", "inputSchema", "name"]


@pytest.mark.parametrize(
    "entry, shown, reason",
    [
        (None, "#0", "not-an-object"),
        (7, "#0", "not-an-object"),
        ("x", "#0", "not-an-object"),
        ([], "#0", "not-an-object"),
        ({}, "#0", "name-missing"),
        ({"name": None}, "#0", "name-missing"),
        ({"name": ""}, "#0", "name-invalid"),
        ({"name": 5, "inputSchema": {"type": "object"}}, "#0", "name-invalid"),
        ({"name": "n"}, "n", "schema-missing"),
        ({"name": "n", "inputSchema": None}, "n", "schema-missing"),
        ({"name": "n", "inputSchema": True}, "n", "schema-invalid"),
        ({"name": "n", "inputSchema": []}, "n", "schema-invalid"),
        ({"name": "n", "inputSchema": {}}, "n", "schema-not-an-object"),
        (
            {"name": "n", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
            "n",
            "schema-not-an-object",
        ),
        ({"name": "n", "inputSchema": {"type": ["object"]}}, "n", "schema-not-an-object"),
        ({**GOOD, "description": 5}, "good", "description-invalid"),
        ({**GOOD, "title": []}, "good", "title-invalid"),
        ({**GOOD, "outputSchema": True}, "good", "output-schema-invalid"),
        ({**GOOD, "annotations": "x"}, "good", "annotations-invalid"),
        ({**GOOD, "icons": [5]}, "good", "icons-invalid"),
        ({**GOOD, "_meta": 5}, "good", "meta-invalid"),
        ({"name": "n" * 300}, "n" * 256, "schema-missing"),
    ],
)
def test_a_malformed_tool_costs_that_tool(entry: Json, shown: str, reason: str) -> None:
    page = tools(entry, GOOD)
    assert page == Page((Entry("good", orjson.dumps(GOOD)),), (Withheld(shown, reason),), None)


def test_null_optional_members_count_as_absent() -> None:
    nulls: JsonObject = dict.fromkeys(
        ("description", "title", "annotations", "outputSchema", "icons", "_meta"), None
    )
    assert [entry.name for entry in tools({**GOOD, **nulls}).entries] == ["good"]


def test_an_entry_that_is_no_json_text_is_withheld() -> None:
    deep: Json = {}
    for _ in range(300):
        deep = {"a": deep}
    page = tools({**GOOD, "x": "\ud800"}, {**GOOD, "x": deep}, GOOD)
    assert [each.reason for each in page.withheld] == ["not-json", "not-json"]
    assert len(page.entries) == 1


def test_names_that_only_policy_judges_stay_in_the_list() -> None:
    names = ["n" * 300, "a\nb", "a b", "x/y", "ツ", "=?base64?dGVzdA==?="]
    page = tools(*({**GOOD, "name": name} for name in names))
    assert [entry.name for entry in page.entries] == names


@pytest.mark.parametrize(
    "method, entry, reason",
    [
        ("resources/list", {"name": "n"}, "uri-missing"),
        ("resources/list", {"name": "n", "uri": ""}, "uri-invalid"),
        ("resources/list", {"uri": "a:b"}, "name-missing"),
        ("resources/list", {"uri": "a:b", "name": "n", "size": "1"}, "size-invalid"),
        ("resources/list", {"uri": "a:b", "name": "n", "mimeType": 1}, "mime-type-invalid"),
        ("resources/templates/list", {"name": "n", "uri": "a:b"}, "uri-template-missing"),
        ("prompts/list", {"name": "n", "arguments": [{}]}, "arguments-invalid"),
        ("prompts/list", {"name": "n", "arguments": {}}, "arguments-invalid"),
    ],
)
def test_a_malformed_entry_of_another_list_costs_that_entry(
    method: str, entry: JsonObject, reason: str
) -> None:
    page = read_page(method, {MEMBERS[method]: [entry]})
    shown = "n" if method != "resources/list" else str(entry.get("uri") or entry.get("name"))
    assert page == Page((), (Withheld(shown, reason, method),), None)


def test_entries_of_resources_and_templates_are_named_by_their_uri() -> None:
    resource: JsonObject = {"uri": "kb://z/n%237", "name": "n"}
    template: JsonObject = {"uriTemplate": "kb://{x}", "name": "n"}
    assert read_page("resources/list", {"resources": [resource]}).entries[0].name == "kb://z/n%237"
    listed = read_page("resources/templates/list", {"resourceTemplates": [template]})
    assert listed.entries[0].name == "kb://{x}"


def test_indexes_go_on_from_the_pages_before() -> None:
    page = read_page("tools/list", {"tools": [GOOD, None]}, first_index=40)
    assert page.withheld == (Withheld("#41", "not-an-object"),)
    assert page.count == 2


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
@pytest.mark.parametrize("listed", [None, {}, "x", 5])
def test_a_result_without_its_list_is_refused(method: str, listed: Json) -> None:
    with pytest.raises(ListMissing) as refused:
        read_page(method, {MEMBERS[method]: listed})
    assert refused.value.code == "list-missing"
    with pytest.raises(ListMissing):
        read_page(method, {})


def test_templates_may_be_left_out_but_not_malformed() -> None:
    assert read_page("resources/templates/list", {}) == Page((), (), None)
    assert read_page("resources/templates/list", {"resourceTemplates": None}) == Page((), (), None)
    with pytest.raises(ListMissing):
        read_page("resources/templates/list", {"resourceTemplates": {}})


@pytest.mark.parametrize("cursor", [None, "", "8", "x" * 5000])
def test_only_an_absent_or_null_cursor_ends_the_list(cursor: str | None) -> None:
    assert read_page("tools/list", {"tools": [], "nextCursor": cursor}).next_cursor == cursor
    assert read_page("tools/list", {"tools": []}).next_cursor is None


@pytest.mark.parametrize("cursor", [0, False, [], {}])
def test_a_cursor_that_is_no_text_is_refused(cursor: Json) -> None:
    with pytest.raises(CursorMalformed):
        read_page("tools/list", {"tools": [], "nextCursor": cursor})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=10,
)
entries = json_values | st.fixed_dictionaries(
    {},
    optional={
        "name": json_values,
        "uri": json_values,
        "uriTemplate": json_values,
        "inputSchema": json_values | st.just({"type": "object"}),
        "description": json_values,
        "arguments": json_values,
        "icons": json_values,
    },
)


@given(method=st.sampled_from(sorted(MEMBERS)), listed=st.lists(entries, max_size=5))
def test_every_entry_is_either_listed_or_withheld(method: str, listed: list[Json]) -> None:
    page = read_page(method, {MEMBERS[method]: listed})
    assert page.count == len(listed)
    assert all(each.name and each.reason == each.reason.lower() for each in page.withheld)
    kept = [orjson.loads(entry.raw) for entry in page.entries]
    assert all(each in listed for each in kept)


@given(method=st.sampled_from(sorted(MEMBERS)), listed=st.lists(entries, max_size=5))
def test_what_is_listed_satisfies_the_protocol_schema(method: str, listed: list[Json]) -> None:
    """Nulls aside, which the daemon tolerates, an accepted entry is what the specification describes."""
    for entry in read_page(method, {MEMBERS[method]: listed}).entries:
        value = orjson.loads(entry.raw)
        assert isinstance(value["name"], str)
        if method == "tools/list":
            assert value["inputSchema"]["type"] == "object"
