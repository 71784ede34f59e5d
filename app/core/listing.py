"""One page of a list as a server answered it: good entries, the others by reason, the cursor. SPEC §prepare.

Judges the envelope and the form of each entry by ``schema.ts`` of MCP 2026-07-28 (Tool, Resource,
ResourceTemplate, Prompt) and server/utilities/pagination; a null optional member counts as absent. It neither
fetches pages nor decides which tools may be called: names that cannot be addressed and schemas that cannot be
used are ``policy``'s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import orjson

from app.core.catalog import Entry, Withheld
from app.core.compact_bytes import compact
from app.core.json_value import Json, JsonObject

NAME_SHOWN_MAX = 256
"""Characters of a withheld entry's name that are shown."""


class PageError(Exception):
    """The page itself cannot be used, so neither can the list: ``catalog-invalid``."""

    code = "page-invalid"
    """The ``reason`` of the Problem."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        """Our own phrase; no remote text."""


class ListMissing(PageError):
    """The result has no array of entries."""

    code = "list-missing"


class CursorMalformed(PageError):
    """The result's cursor is neither text nor null nor absent."""

    code = "cursor-malformed"


@dataclass(frozen=True, slots=True)
class Page:
    """What one page gave."""

    entries: tuple[Entry, ...]
    withheld: tuple[Withheld, ...]
    next_cursor: str | None
    """Opaque; the empty string is a cursor, only None ends the list."""

    @property
    def count(self) -> int:
        """How many entries the page had; add it to ``first_index`` for the next page."""
        return len(self.entries) + len(self.withheld)


Check: TypeAlias = Callable[[Json], bool]


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_object_array(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _is_prompt_arguments(value: Json) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in value
    )


_DISPLAYED: Mapping[str, Check] = {
    "title": _is_text,
    "description": _is_text,
    "icons": _is_object_array,
    "_meta": _is_object,
}


@dataclass(frozen=True, slots=True)
class _Form:
    """How one list looks."""

    member: str
    key: str
    """The member that names an entry."""
    optional: Mapping[str, Check]
    requires_name: bool = False
    """Whether entries have a ``name`` beside their key."""
    is_required: bool = True
    """Whether the result must have the list. ``resourceTemplates`` is left out by servers without any."""


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "tools/list": _Form(
            "tools", "name", {**_DISPLAYED, "outputSchema": _is_object, "annotations": _is_object}
        ),
        "resources/list": _Form(
            "resources",
            "uri",
            {**_DISPLAYED, "mimeType": _is_text, "annotations": _is_object, "size": _is_number},
            requires_name=True,
        ),
        "resources/templates/list": _Form(
            "resourceTemplates",
            "uriTemplate",
            {**_DISPLAYED, "mimeType": _is_text, "annotations": _is_object},
            requires_name=True,
            is_required=False,
        ),
        "prompts/list": _Form("prompts", "name", {**_DISPLAYED, "arguments": _is_prompt_arguments}),
    }
)

_CODES: Mapping[str, str] = MappingProxyType(
    {"uriTemplate": "uri-template", "outputSchema": "output-schema", "mimeType": "mime-type", "_meta": "meta"}
)
"""Members whose reason codes are not just their names."""


def read_page(method: str, result: JsonObject, *, first_index: int = 0) -> Page:
    """Return the page that the result of a list request gives; entries keep the order and keys of the server.

    Args:
        method: One of the four list methods.
        result: The result as the wire decoded it.
        first_index: How many entries the pages before had; an entry without a usable name is shown by index.

    Raises:
        ListMissing: the list is absent or no array; only ``resources/templates/list`` may leave it out.
        CursorMalformed: ``nextCursor`` is neither text nor null nor absent.
    """
    form = _FORMS[method]
    entries: list[Entry] = []
    withheld: list[Withheld] = []
    for index, value in enumerate(_listed(form, result), first_index):
        read = _read_entry(method, form, value)
        if isinstance(read, Entry):
            entries.append(read)
        else:
            withheld.append(Withheld(_shown_name(form, value) or f"#{index}", read, method))
    return Page(tuple(entries), tuple(withheld), _next_cursor(result))


def _listed(form: _Form, result: JsonObject) -> list[Json]:
    listed = result.get(form.member)
    if listed is None and not form.is_required:
        return []
    if not isinstance(listed, list):
        raise ListMissing(f"the result has no array '{form.member}'")
    return listed


def _next_cursor(result: JsonObject) -> str | None:
    cursor = result.get("nextCursor")
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise CursorMalformed("the result's nextCursor is not text")


def _read_entry(method: str, form: _Form, value: Json) -> Entry | str:
    """Return the entry, or the reason code why it is withheld."""
    if not isinstance(value, dict):
        return "not-an-object"
    fault = _key_fault(form, value) or _optional_fault(form, value)
    if fault is None and method == "tools/list":
        fault = _input_schema_fault(value)
    if fault is not None:
        return fault
    try:
        return Entry(str(value[form.key]), compact(orjson.dumps(value)))
    except TypeError:  # what orjson cannot write was no JSON of one Unicode text and bounded depth
        return "not-json"


def _key_fault(form: _Form, value: JsonObject) -> str | None:
    for member in (form.key, "name") if form.requires_name else (form.key,):
        key = value.get(member)
        if key is None:
            return f"{_CODES.get(member, member)}-missing"
        if not isinstance(key, str) or not key:
            return f"{_CODES.get(member, member)}-invalid"
    return None


def _optional_fault(form: _Form, value: JsonObject) -> str | None:
    faulty = [
        member
        for member in value.keys() & form.optional.keys()
        if (given := value[member]) is not None and not form.optional[member](given)
    ]
    for member in form.optional if faulty else ():
        if member in faulty:
            return f"{_CODES.get(member, member)}-invalid"
    return None


def _input_schema_fault(value: JsonObject) -> str | None:
    """Return what is wrong with the form of ``inputSchema``: the root must say ``"type": "object"``."""
    schema = value.get("inputSchema")
    if schema is None:
        return "schema-missing"
    if not isinstance(schema, dict):
        return "schema-invalid"
    return None if schema.get("type") == "object" else "schema-not-an-object"


def _shown_name(form: _Form, value: Json) -> str | None:
    if not isinstance(value, dict):
        return None
    for member in (form.key, "name"):
        name = value.get(member)
        if isinstance(name, str) and name:
            return name[:NAME_SHOWN_MAX]
    return None
