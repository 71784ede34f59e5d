"""Which servers of a snapshot can be listed from and called."""

from types import MappingProxyType
from typing import Any

import pytest

from app.core.definitions import parse_definition
from app.core.policy import Registry
from app.core.problems import ServerNotConnected, ServerNotFound, ServerUnavailable
from app.core.snapshot import Published, ServerSnapshot, ServerState, WorkspaceSnapshot
from app.operations.servers import connected_server, published_server
from app.ports import Connection
from tests.support.gated_connection import GatedConnection, catalog

DEFINITION = parse_definition({"name": "p", "transport": "stdio", "command": "/peer"})
LOST = ServerUnavailable("p", "stdio", "it ended")


def snapshot(state: ServerState, *, is_published: bool) -> WorkspaceSnapshot[Connection]:
    published: Published[Connection] | None = None
    if is_published:
        published = Published(GatedConnection("p", catalog()), catalog(), Registry({}, "r"))
    server: ServerSnapshot[Connection] = ServerSnapshot(
        "p", "service", state, DEFINITION, published, None if state is ServerState.CONNECTED else LOST
    )
    return WorkspaceSnapshot(MappingProxyType({"p": server}))


@pytest.mark.spec("hydration")
def test_a_connected_server_can_be_called_and_a_recovering_one_listed() -> None:
    connected = snapshot(ServerState.CONNECTED, is_published=True)
    assert connected_server(connected, "p") == (connected.servers["p"], published_server(connected, "p"))
    recovering = snapshot(ServerState.UNAVAILABLE, is_published=True)
    assert published_server(recovering, "p") is recovering.servers["p"].published
    with pytest.raises(ServerNotConnected) as raised:
        connected_server(recovering, "p")
    cause: Any = raised.value.facts["cause"]
    assert cause["code"] == "server-unavailable"


@pytest.mark.spec("hydration")
def test_a_server_without_a_catalog_can_do_neither_and_an_unknown_one_is_not_found() -> None:
    never = snapshot(ServerState.UNAVAILABLE, is_published=False)
    for find in (published_server, connected_server):
        with pytest.raises(ServerNotConnected):
            find(never, "p")
        with pytest.raises(ServerNotFound):
            find(never, "q")
