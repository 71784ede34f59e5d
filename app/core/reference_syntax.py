"""The syntax of ``${NAME}``: what is a reference, what is an escape and what is a fault. SPEC §references."""

import re

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>" + NAME + r")\}", re.ASCII)
"""An escape (no ``name``) or a reference, left to right."""

COMPLETE_PATTERN = r"^\$\{" + NAME + r"\}$"
"""One complete reference, for JSON Schema."""
SYNTAX_PATTERN = r"^(?:\$\$\{|\$\{" + NAME + r"\}|(?!\$\$?\{)[^\u0000])*$"
"""A text without a malformed reference and without NUL, for JSON Schema."""
WITHOUT_PATTERN = r"^(?:(?!\$\{)[^\u0000])*$"
"""A text in which no reference stands and no NUL, for JSON Schema."""

_COMPLETE = re.compile(r"\$\{" + NAME + r"\}", re.ASCII)
_ANY_OPENING = re.compile(r"\$\$\{|\$\{(?:" + NAME + r"\})?", re.ASCII)


def find(text: str) -> tuple[str, ...]:
    """Return the names that the text references, each once, in order of first appearance."""
    return tuple(dict.fromkeys(token["name"] for token in TOKEN.finditer(text) if token["name"]))


def syntax_fault(text: str) -> str | None:
    """Return what is wrong with the references of a text, or None where each is well formed."""
    if any(opening[0] == "${" for opening in _ANY_OPENING.finditer(text)):
        return "contains a malformed reference: the only form is ${NAME}, and $${ stands for a literal ${"
    return None


def is_complete(text: str) -> bool:
    """Whether the text is one reference and nothing else."""
    return _COMPLETE.fullmatch(text) is not None


def escape(text: str) -> str:
    """Return the text that expands to this one."""
    return text.replace("${", "$${")
