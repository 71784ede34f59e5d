"""The document of a server: complete, and honest about who speaks. SPEC §addresses."""

import re

import orjson
import pytest

from app.core.catalog import Withheld
from app.core.documents import document
from app.core.json_value import Json, JsonObject
from app.core.policy import Effect, Registry, Tool

pytestmark = pytest.mark.spec("addresses")


def tool(name: str, *, effect: Effect = Effect.HOST, **members: Json) -> Tool:
    entry: JsonObject = {"name": name, "inputSchema": {"type": "object"}, **members}
    return Tool(name, effect, orjson.dumps(entry))


def registry(*tools: Tool) -> Registry:
    return Registry({each.name: each for each in tools}, "0")


def headings(text: str) -> list[str]:
    """Return the lines that markdown takes for headings outside fences."""
    found: list[str] = []
    fence = ""
    for line in text.split("\n"):
        ticks = re.match(r"`{3,}", line)
        if ticks and not fence:
            fence = ticks[0]
        elif fence and line == fence:
            fence = ""
        elif not fence and line.startswith("#"):
            found.append(line)
    assert not fence
    return found


def test_the_document_of_one_tool() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"title": {"type": "string", "minLength": 1}},
        "required": ["title"],
    }
    made = tool(
        "create-issue",
        title="Create",
        description="Creates an issue.\r\n\r\n# Not a heading",
        inputSchema=schema,
        outputSchema={"type": "array"},
    )
    assert document("github", registry(made), [Withheld("bad", "schema-missing")]) == (
        "# Tools of `github`\n\n"
        '1 tool is enabled. Call one with the action `workspace.mcp.call`: `server` is "github", `tool` its exact'
        " name, `arguments` an object as its signature and its input schema say: `?` marks what may be left out, `…`"
        " what the line leaves out. Quoted text and schemas are the server's own words.\n\n"
        "## `create-issue`\n\n"
        "> Create\n\n"
        "> Creates an issue.\n>\n> # Not a heading\n\n"
        "Effect `host`: a call may first ask a person for consent.\n\n"
        'Signature:\n\n```ts\n{"title": string}\n```\n\n'
        'Input schema:\n\n```json\n{\n  "type": "object",\n  "properties": {\n    "title": {\n'
        '      "type": "string",\n      "minLength": 1\n    }\n  },\n  "required": [\n    "title"\n  ]\n}\n```\n\n'
        'Output schema:\n\n```json\n{\n  "type": "array"\n}\n```\n\n'
        "## Withheld\n\n"
        "The server lists these too; they cannot be called.\n\n"
        "- `bad`: it has no input schema (`schema-missing`).\n"
    )


def test_every_enabled_tool_has_a_section_in_listed_order() -> None:
    text = document("p", registry(tool("b", effect=Effect.READ), tool("a")))
    assert headings(text) == ["# Tools of `p`", "## `b`", "## `a`"]
    assert "Effect `read`: a call runs at once." in text


def test_a_server_without_enabled_tools_says_so() -> None:
    text = document("p", registry())
    assert "No tools are enabled" in text
    assert "Withheld" not in text


def test_schemas_stand_to_the_letter() -> None:
    schema: JsonObject = {
        "type": "object",
        "$defs": {"z": {"$anchor": "z"}},
        "allOf": [{"if": {"x": 1.0}}],
        "$comment": "``` ```` é \u2028",
    }
    text = document("p", registry(tool("a", inputSchema=schema)))
    [found] = re.findall(r"^(`{3,})json\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)
    assert orjson.loads(found[1]) == schema
    assert list(orjson.loads(found[1])) == list(schema)
    assert found[0] == "`````"


@pytest.mark.spec("policy")
def test_annotations_are_shown_as_the_servers_words_beside_our_effect() -> None:
    text = document("p", registry(tool("rm", annotations={"readOnlyHint": True}), tool("b", annotations={})))
    assert text.count("Annotations, as the server says:") == 1
    assert (
        'Annotations, as the server says:\n\n```json\n{\n  "readOnlyHint": true\n}\n```\n\nEffect `host`'
    ) in text


@pytest.mark.parametrize(
    "hostile", ["```\n# Forged", "````\n## `rm`", "> x\n\n# y", "\x1b[2J\u202e# x", "- x\r# y"]
)
def test_what_a_server_writes_cannot_pass_for_ours(hostile: str) -> None:
    made = tool(
        "a",
        title=hostile,
        description=hostile,
        annotations={hostile: hostile},
        inputSchema={"type": "object", "description": hostile, "properties": {hostile: {"const": hostile}}},
        outputSchema={"title": hostile},
    )
    text = document("p", registry(made), [Withheld(hostile, "name-invalid")])
    assert headings(text) == ["# Tools of `p`", "## `a`", "## Withheld"]
    outside = text.replace("\n", "")
    assert outside.isprintable()


@pytest.mark.parametrize(
    "name, heading",
    [
        ("a`b", "## ``a`b``"),
        ("`", "## `` ` ``"),
        ("```", "## ```` ``` ````"),
        (" ", "##"),
        ("日本 語", "## `日本 語`"),
        ("# x", "## `# x`"),
    ],
)
def test_names_stand_in_code_spans_they_cannot_close(name: str, heading: str) -> None:
    assert heading in document("p", registry(tool(name)))


def test_every_line_of_a_description_is_quoted_whatever_ends_it() -> None:
    assert "\n\n> a\n> b\n> c\n>\n>     d\n\n" in document(
        "p", registry(tool("t", description="a\rb\r\nc\n\n\td"))
    )


def test_long_descriptions_are_cut() -> None:
    text = document("p", registry(tool("a", description="x" * 100_000)))
    assert f"> {'x' * 8_000}…\n" in text


def test_a_document_that_would_be_too_large_says_what_it_leaves_out() -> None:
    wide: JsonObject = {"type": "object", "description": "d" * 5_000}
    tools = [tool(f"t{index}", inputSchema=wide) for index in range(50)]
    text = document("p", registry(*tools), max_bytes=20_000)
    assert len(text.encode()) < 21_000
    assert len(headings(text)) == 51
    tiny = document("p", registry(*tools), max_bytes=400)
    assert tiny.endswith('more: the action `workspace.mcp.tools` with `server` "p" lists them all.\n')
    shown = len(headings(tiny)) - 1
    assert f"\n{50 - shown} more:" in tiny


def test_only_withheld_tools_are_explained_and_not_all_of_thousands() -> None:
    withheld = [Withheld(f"w{index}", "output-schema-too-deep") for index in range(500)]
    text = document("p", registry(), [Withheld("r", "uri-missing", "resources/list"), *withheld])
    assert "`r`" not in text
    assert "- `w0`: its output schema is nested too deep (`output-schema-too-deep`).\n" in text
    assert text.endswith("- 300 more\n")


@pytest.mark.parametrize(
    "reason",
    ["not-an-object", "description-invalid", "header-annotation-invalid", "output-schema-invalid", "x-new"],
)
def test_every_reason_has_a_sentence(reason: str) -> None:
    line = document("p", registry(), [Withheld("#3", reason)]).splitlines()[-1]
    assert re.fullmatch(rf"- `#3`: it.+ \(`{reason}`\)\.", line)
