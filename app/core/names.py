"""Names of workspaces and servers: what is allowed, folded and reserved. SPEC §definition, §problems."""

import re

from app.core.problems import ParameterInvalid, WorkspaceInvalid, WorkspaceRequired

RESERVED_SERVER_NAMES = frozenset({"worker", "plurnk", "http", "https", "file", "stdio"})
SERVER_NAME_MAX = 64
WORKSPACE_NAME_PATTERN = r"(?!\.)[A-Za-z0-9._-]{1,128}"
"""What a whole name matches, here and in the schemas that clients read."""
_SERVER_NAME = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_WORKSPACE_NAME = re.compile(WORKSPACE_NAME_PATTERN, re.ASCII)


def server_name_fault(name: str) -> str | None:
    """Return what is wrong with a server name as one sentence, or None where it is a good one."""
    if not _SERVER_NAME.fullmatch(name):
        return "a server name matches [a-z][a-z0-9-]*: lower-case letters, digits and hyphens, a letter first"
    if len(name) > SERVER_NAME_MAX:
        return f"a server name has at most {SERVER_NAME_MAX} characters"
    if name in RESERVED_SERVER_NAMES:
        return f"'{name}' is a reserved name"
    return None


def parse_server_name(name: object, *, field: str = "name") -> str:
    """Return the server name an action gave.

    Raises:
        ParameterInvalid: it is not text, or not a server name; names the field.
    """
    if not isinstance(name, str):
        raise ParameterInvalid(field, "a server name is a string")
    if fault := server_name_fault(name):
        raise ParameterInvalid(field, fault)
    return name


def parse_workspace_name(name: object) -> str:
    """Return the workspace name a client gave: 1 to 128 of ``[A-Za-z0-9._-]``, not starting with a dot.

    Raises:
        WorkspaceRequired: no name was given.
        WorkspaceInvalid: it is not a workspace name.
    """
    if name is None or name == "":
        raise WorkspaceRequired
    if not isinstance(name, str) or not _WORKSPACE_NAME.fullmatch(name):
        raise WorkspaceInvalid
    return name
