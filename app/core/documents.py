"""The document of a server: every enabled tool, for a model or a person to read. SPEC §addresses.

Markdown. What the server wrote stands in quotes and fences that it cannot close, so that it cannot pass for
ours.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import orjson

from app.core.catalog import Withheld
from app.core.descriptions import clean, readable
from app.core.json_value import Json
from app.core.policy import Effect, Registry, Tool
from app.core.printable_json import printable_json
from app.core.tool_view import tool_view
from app.core.withheld import explained

BYTES_MAX: Final = 2 * 1024 * 1024
"""Of the sections in full; the tools after them have their signature only, or are counted."""
_NAME_MAX = 256
_WITHHELD_MAX = 200

_TICKS = re.compile(r"`+")
_EFFECTS: Mapping[Effect, str] = MappingProxyType(
    {
        Effect.READ: "`read`: a call runs at once.",
        Effect.HOST: "`host`: a call may first ask a person for consent.",
    }
)


def document(
    server: str, registry: Registry, withheld: Iterable[Withheld] = (), *, max_bytes: int = BYTES_MAX
) -> str:
    """Return the document of the server's enabled tools, and of the tools that are withheld and why."""
    sections = [_head(server, len(registry.tools)), *_tools(server, registry, max_bytes=max_bytes)]
    missing = [each for each in withheld if each.method == "tools/list"]
    if missing:
        sections.append(_withheld(missing))
    return "\n\n".join(sections) + "\n"


def _head(server: str, count: int) -> str:
    enabled = "1 tool is enabled" if count == 1 else f"{count or 'No'} tools are enabled"
    return (
        f"# Tools of `{server}`\n\n{enabled}. Call one with the action `workspace.mcp.call`: `server` is"
        f' "{server}", `tool` its exact name, `arguments` an object as its signature and its input schema say: `?`'
        " marks what may be left out, `…` what the line leaves out. Quoted text and schemas are the server's own"
        " words."
    )


def _tools(server: str, registry: Registry, *, max_bytes: int) -> Iterator[str]:
    room, left = max_bytes, len(registry.tools)
    for tool in registry.tools.values():
        for section in (_section(tool), _short_section(tool)):
            size = len(section.encode())
            if size <= room:
                room -= size
                left -= 1
                yield section
                break
        else:
            break
    if left:
        yield f'{left} more: the action `workspace.mcp.tools` with `server` "{server}" lists them all.'


def _section(tool: Tool) -> str:
    entry = orjson.loads(tool.raw)
    view = tool_view(tool.raw)
    parts = [f"## {_code(tool.name)}"]
    if isinstance(entry.get("title"), str):
        parts.append(_quote(readable(entry["title"], limit=_NAME_MAX)))
    if view.description:
        parts.append(_quote(view.description))
    if isinstance(annotations := entry.get("annotations"), dict) and annotations:
        parts.append(f"Annotations, as the server says:\n\n{_json(annotations)}")
    parts += [
        f"Effect {_EFFECTS[tool.effect]}",
        f"Signature:\n\n{_fenced(view.signature, 'ts')}",
        f"Input schema:\n\n{_schema(view.input_schema)}",
    ]
    if view.output_schema is not None:
        parts.append(f"Output schema:\n\n{_schema(view.output_schema)}")
    return "\n\n".join(parts)


def _short_section(tool: Tool) -> str:
    signature = _fenced(tool_view(tool.raw).signature, "ts")
    return f"## {_code(tool.name)}\n\nEffect {_EFFECTS[tool.effect]}\n\nSignature:\n\n{signature}"


def _withheld(withheld: list[Withheld]) -> str:
    lines = [
        f"- {_code(each.name)}: {explained(each.reason)} (`{each.reason}`)."
        for each in withheld[:_WITHHELD_MAX]
    ]
    if len(withheld) > _WITHHELD_MAX:
        lines.append(f"- {len(withheld) - _WITHHELD_MAX} more")
    return "## Withheld\n\nThe server lists these too; they cannot be called.\n\n" + "\n".join(lines)


def _schema(schema: bytes) -> str:
    return _json(orjson.loads(schema))


def _json(value: Json) -> str:
    return _fenced(printable_json(value, is_indented=True), "json")


def _fenced(text: str, language: str) -> str:
    """Return the text in a fence longer than any run of backticks in it. CommonMark §4.5."""
    fence = "`" * max(3, _longest_ticks(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(name: str) -> str:
    """Return the name as a code span that it cannot close. CommonMark §6.1."""
    shown = clean(name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}…").replace("\n", " ")
    ticks = "`" * (_longest_ticks(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _quote(text: str) -> str:
    """Return the text as a block quote, which nothing in it ends."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
