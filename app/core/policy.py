"""Which tools of a catalog may be called, and with which effect. SPEC §policy, §prepare, §limits.

Decided by the operator's definition and the form of the tools; a server's annotations are displayed, never
trusted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import orjson

from app.core import param_headers
from app.core.canonical import canonical, revision
from app.core.catalog import Entry, Judgement, ServerCatalog, Withheld
from app.core.compact_bytes import compact
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.json_value import Json
from app.core.problems import CatalogInvalid
from app.core.schemas import DEPTH_MAX, NODES_MAX, SchemaInvalid, require_usable

TOOL_NAME_MAX = 256
"""Characters of a tool's name that can be addressed."""

_NAMES_SHOWN_MAX = 20
_NAME_SHOWN_MAX = 512
# U+FFFD stands where the wire met a lone surrogate: calling that name would call another.
_UNADDRESSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
_LIST = "tools/list"


class Effect(StrEnum):
    """What calling a tool needs: nothing, or a person's consent. SPEC §policy."""

    READ = "read"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Tool:
    """One enabled tool."""

    name: str
    effect: Effect
    raw: bytes
    """The entry of ``tools/list`` as the server sent it."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The exact enabled tools of a server, by exact name, in listed order."""

    tools: Mapping[str, Tool]
    revision: str
    """SHA-256, in hex, of the canonical JSON (RFC 8785) of the enabled tools."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What policy makes of a catalog."""

    registry: Registry
    withheld: tuple[Withheld, ...]
    """The malformed entries of every list and the enabled tools that cannot be offered, with reason codes."""


def is_addressable(name: str) -> bool:
    """Whether a tool of this name can be called: 1 to 256 characters, no control, no lone surrogate."""
    return 0 < len(name) <= TOOL_NAME_MAX and _UNADDRESSABLE.search(name) is None


def admit(
    catalog: ServerCatalog,
    definition: StdioDefinition | HttpDefinition,
    *,
    max_schema_depth: int = DEPTH_MAX,
    max_schema_nodes: int = NODES_MAX,
) -> Admitted:
    """Return the tools that the definition enables, and what is withheld.

    An enabled tool with a schema that cannot be used is withheld; over HTTP also one whose ``x-mcp-header``
    annotations break the rules. Both may be named in ``tools`` and ``read``: the server does list them.

    Raises:
        CatalogInvalid: two tools have one name, enabled or not; a tool named in ``tools`` or ``read`` is not
        listed; a
            tool in ``read`` is not enabled; an enabled name cannot be addressed. Names the tools.
    """
    _require_unique(catalog, definition)
    enabled = _enabled(catalog, definition)
    _require_addressable(enabled, definition)
    tools: dict[str, Tool] = {}
    canonicals: list[bytes] = []
    withheld = list(catalog.withheld)
    read = frozenset(definition.read)
    for entry in enabled:
        judgement = catalog.judged.get(entry.name) or judge(
            entry.raw,
            is_http=isinstance(definition, HttpDefinition),
            max_schema_depth=max_schema_depth,
            max_schema_nodes=max_schema_nodes,
        )
        if judgement.fault is None:
            effect = Effect.READ if entry.name in read else Effect.HOST
            tools[entry.name] = Tool(entry.name, effect, entry.raw)
            canonicals.append(judgement.canonical)
        else:
            withheld.append(Withheld(entry.name, judgement.fault, _LIST))
    return Admitted(Registry(MappingProxyType(tools), revision(canonicals)), tuple(withheld))


def judge(raw: bytes, *, is_http: bool, max_schema_depth: int, max_schema_nodes: int) -> Judgement:
    """Return what is to be found of a tool's entry by itself; of a hostile one that may take seconds."""
    value = orjson.loads(raw)
    schema, output = value["inputSchema"], value.get("outputSchema")
    fault = next(_schema_faults(schema, output, limits=(max_schema_depth, max_schema_nodes)), None)
    may_be_mirrored = is_http and param_headers.MARK in raw
    if fault is None and may_be_mirrored and param_headers.fault(orjson.dumps(schema)) is not None:
        fault = "header-annotation-invalid"
    form = canonical(value) if fault is None else b""
    return Judgement(fault, raw if form == raw else compact(form))


def _require_unique(catalog: ServerCatalog, definition: StdioDefinition | HttpDefinition) -> None:
    if len({entry.name for entry in catalog.tools}) == len(catalog.tools):
        return
    counts = Counter(entry.name for entry in catalog.tools)
    names = [name for name, count in counts.items() if count > 1]
    raise _invalid(definition, "tool-duplicate", "it lists more than one tool named", names)


def _enabled(catalog: ServerCatalog, definition: StdioDefinition | HttpDefinition) -> Sequence[Entry]:
    """Return the entries that the definition enables, in listed order.

    Raises:
        CatalogInvalid: the definition names what is not listed, or reads what it does not enable.
    """
    listed = {entry.name for entry in catalog.tools}
    listed.update(each.name for each in catalog.withheld if each.method == _LIST)
    named = dict.fromkeys([*(definition.tools or ()), *definition.read])
    absent = [name for name in named if name not in listed]
    if absent:
        raise _invalid(
            definition, "tool-absent", "the definition names tools that the server does not list:", absent
        )
    if definition.tools is None:
        return catalog.tools
    wanted = frozenset(definition.tools)
    if outside := [name for name in definition.read if name not in wanted]:
        raise _invalid(
            definition, "read-not-enabled", "'read' names tools that 'tools' does not enable:", outside
        )
    return [entry for entry in catalog.tools if entry.name in wanted]


def _require_addressable(enabled: Iterable[Entry], definition: StdioDefinition | HttpDefinition) -> None:
    names = [entry.name for entry in enabled if not is_addressable(entry.name)]
    if names:
        raise _invalid(
            definition,
            "tool-not-addressable",
            f"these enabled names have more than {TOOL_NAME_MAX} characters or a control character; name the"
            " others in 'tools':",
            names,
        )


def _invalid(
    definition: StdioDefinition | HttpDefinition, reason: str, detail: str, names: Sequence[str]
) -> CatalogInvalid:
    shown = [_UNADDRESSABLE.sub("\ufffd", name[:_NAME_SHOWN_MAX]) for name in names[:_NAMES_SHOWN_MAX]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    quoted = ", ".join(f"'{name}'" for name in shown)
    return CatalogInvalid(definition.name, reason, f"{detail} {quoted}{more}", names=shown)


def _schema_faults(schema: Json, output: Json, *, limits: tuple[int, int]) -> Iterator[str]:
    max_depth, max_nodes = limits
    for prefix, each in (("", schema), ("output-", output)):
        if each is None:
            continue
        try:
            require_usable(each, max_depth=max_depth, max_nodes=max_nodes)
        except SchemaInvalid as invalid:
            yield prefix + invalid.reason
