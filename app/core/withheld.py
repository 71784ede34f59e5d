"""Why an entry of a list is withheld, in words. SPEC §prepare."""

from collections.abc import Mapping
from types import MappingProxyType

_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "dialect-unsupported": "its input schema is written in a dialect that is not supported",
        "header-annotation-invalid": "its `x-mcp-header` annotations break the rules of the protocol",
        "name-invalid": "its name is empty or no text",
        "name-missing": "it has no name",
        "not-an-object": "its entry is no object",
        "not-json": "its entry holds what JSON cannot",
        "reference-unresolved": "its input schema refers to something outside itself, which is never fetched",
        "schema-invalid": "its input schema is no valid JSON Schema",
        "schema-missing": "it has no input schema",
        "schema-not-an-object": 'its input schema does not say `"type": "object"`',
        "schema-too-costly": "its input schema takes too long to apply",
        "schema-too-deep": "its input schema is nested too deep",
        "schema-too-large": "its input schema is too large",
    }
)


def explained(reason: str) -> str:
    """Return the sentence for a reason code, without its full stop; one for codes that have none of their own."""
    said = _REASONS.get(reason)
    if said is not None:
        return said
    of_output = _REASONS.get(reason.removeprefix("output-"), "its entry is malformed")
    return of_output.replace(" input ", " output ")
