"""JSON text in which nothing moves the cursor, hides or reorders what a person sees. SPEC §addresses."""

import orjson

from app.core.json_value import Json


def printable_json(value: Json, *, is_indented: bool = False) -> str:
    """Return the value as JSON, on one line or indented; what does not print stands as JSON escapes."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if is_indented else None).decode()
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    """Return the character, which only a string can hold, as JSON escapes. RFC 8259 §7."""
    utf16 = character.encode("utf-16-be")
    return "".join(f"\\u{utf16[index : index + 2].hex()}" for index in range(0, len(utf16), 2))
