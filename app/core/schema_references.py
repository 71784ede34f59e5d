"""Where every reference of a JSON Schema leads, through ``$id`` and dynamic anchors too. SPEC §calls, §limits.

For counting what a validator may do, so it says all places that may be meant and judges none.
"""

from collections.abc import Iterator
from urllib.parse import urldefrag, urljoin

from app.core.json_value import Json, JsonObject
from app.core.schema_keywords import resolve, subschemas

_NO_BASE = "schema:/"


class References:
    """The references of one schema document."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._bases: dict[int, str] = {}
        self._resources: dict[str, JsonObject] = {}
        self._dynamic: dict[str, list[JsonObject]] = {}
        self.has_recursive_anchor = False
        waiting: list[tuple[str, Json]] = [(_NO_BASE, root)]
        while waiting:
            base, schema = waiting.pop()
            if isinstance(schema, dict) and id(schema) not in self._bases:
                base = self._enter(schema, base)
                waiting.extend((base, each) for _, each in subschemas(schema))

    @property
    def is_dynamic(self) -> bool:
        """Whether a schema elsewhere could lead back into this one."""
        return bool(self._dynamic) or self.has_recursive_anchor

    def _enter(self, schema: JsonObject, base: str) -> str:
        """Note what the schema is called; return the base of what is below it."""
        named = schema.get("$id", schema.get("id"))
        if isinstance(named, str) and not named.startswith("#"):
            base = _joined(base, named)
            self._resources[base] = schema
        self._resources.setdefault(base, schema)
        self._bases[id(schema)] = base
        anchor = schema.get("$dynamicAnchor")
        if isinstance(anchor, str):
            self._dynamic.setdefault(anchor, []).append(schema)
        self.has_recursive_anchor = self.has_recursive_anchor or schema.get("$recursiveAnchor") is True
        return base

    def of(self, schema: JsonObject) -> Iterator[Json]:
        """Yield where the references of a schema may lead; None for a place outside of the document."""
        if isinstance(reference := schema.get("$ref"), str):
            yield self._target(schema, reference)
        if isinstance(reference := schema.get("$dynamicRef"), str):
            named = self._dynamic.get(urldefrag(reference)[1])
            yield from named or [self._target(schema, reference)]
        if "$recursiveRef" in schema:
            yield self._root
            yield self._resources.get(self._bases.get(id(schema), ""))

    def _target(self, schema: JsonObject, reference: str) -> Json:
        base = self._bases.get(id(schema), _NO_BASE)
        uri, fragment = urldefrag(_joined(base, reference))
        # A pointer may lead through other resources; an anchor is looked for in its own first.
        for document in (self._resources.get(uri), self._root if reference.startswith("#") else None):
            found = None if document is None else resolve(document, f"#{fragment}")
            if found is not None:
                return found[1]
        return None


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference) if reference.partition("#")[0] else f"{base}{reference}"
    except ValueError:
        return reference
