"""A snapshot is a value: a changed one is another, and the old one stays what it was."""

import pytest

from app.core.definitions import parse_definition
from app.core.snapshot import ServerSnapshot, ServerState, WorkspaceSnapshot

pytestmark = pytest.mark.spec("lifecycle")


def server(name: str, state: ServerState = ServerState.UNAVAILABLE) -> ServerSnapshot[None]:
    definition = parse_definition({"name": name, "transport": "stdio", "command": "/x"})
    return ServerSnapshot(name=name, source="workspace", state=state, definition=definition)


def test_with_and_without_a_server_make_new_snapshots() -> None:
    empty: WorkspaceSnapshot[None] = WorkspaceSnapshot({})
    one = empty.with_server(server("a"))
    two = one.with_server(server("b"))
    assert (list(empty.servers), list(one.servers), list(two.servers)) == ([], ["a"], ["a", "b"])
    assert list(two.without_server("a").servers) == ["b"]
    assert two.without_server("nobody").servers == two.servers


def test_a_published_map_cannot_be_changed() -> None:
    empty: WorkspaceSnapshot[None] = WorkspaceSnapshot({})
    snapshot = empty.with_server(server("a"))
    with pytest.raises(TypeError):
        snapshot.servers["b"] = server("b")  # type: ignore[index] # pyright: ignore[reportIndexIssue]


def test_a_server_without_a_publication_is_not_connected() -> None:
    assert not server("a", ServerState.CONNECTED).is_connected
