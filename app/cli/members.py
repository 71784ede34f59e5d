"""Looks into the JSON that a daemon answers with; what is missing or of another type is empty. SPEC §cli."""

from app.cli.printable import one_line
from app.core.json_value import Json, JsonObject


def text_of(document: JsonObject, member: str) -> str:
    """Return the member as text, empty where there is none."""
    value = document.get(member)
    return "" if value is None else str(value)


def number(value: Json) -> float | None:
    """Return the number that a value is; None where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def objects_of(value: Json) -> list[JsonObject]:
    """Return the objects of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def content_text(part: JsonObject) -> str:
    """Return one content part as text: the text itself, or what kind of thing it is."""
    match part.get("type"):
        case "text":
            return text_of(part, "text")
        case "resource_link":
            return f"[{one_line(text_of(part, 'name'))}: {one_line(text_of(part, 'uri'))}]"
        case "resource" if isinstance(resource := part.get("resource"), dict):
            return text_of(resource, "text") or f"[resource {one_line(text_of(resource, 'uri'))}]"
        case kind:
            size = len(text_of(part, "data")) * 3 // 4
            media = one_line(text_of(part, "mimeType"))
            return f"[{one_line(str(kind))} {media}, about {size} bytes; --json has it]"
