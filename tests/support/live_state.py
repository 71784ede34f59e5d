"""Reading the live state as a client does: a snapshot, then its deltas. SPEC §agui."""

from typing import Any


def applied(document: Any, delta: list[Any]) -> None:
    """Apply the three operations we send to ``document``, the value of ``plurnk``. RFC 6902."""
    for operation in delta:
        _, plurnk, *path = operation["path"].split("/")
        assert plurnk == "plurnk"
        target, last = document, path[-1].replace("~1", "/").replace("~0", "~")
        for part in path[:-1]:
            target = target[part]
        if operation["op"] == "remove":
            del target[last]
        elif operation["op"] == "replace":
            assert last in target
            target[last] = operation["value"]
        else:
            target[last] = operation["value"]
