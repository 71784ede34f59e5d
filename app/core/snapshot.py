"""What a workspace shows and what its executors use: one immutable, complete value. SPEC §lifecycle.

A reader holds one snapshot and sees the old one or the new one, never a mixture.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, Literal, TypeVar

from app.core.catalog import ServerCatalog, Withheld
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.policy import Registry
from app.core.problem import Problem

ConnectionT = TypeVar("ConnectionT")


class ServerState(StrEnum):
    """The state of a server as ``list`` shows it."""

    CONNECTED = "connected"
    AUTHORIZATION_REQUIRED = "authorization-required"
    UNAVAILABLE = "unavailable"
    PREPARING = "preparing"


@dataclass(frozen=True, slots=True)
class Published(Generic[ConnectionT]):
    """What a connection gave and policy admitted."""

    connection: ConnectionT
    catalog: ServerCatalog
    registry: Registry
    withheld: tuple[Withheld, ...] = ()
    """Malformed entries and the tools that policy withholds."""
    is_live: bool = False
    """Whether changes are watched."""


@dataclass(frozen=True, slots=True)
class ServerSnapshot(Generic[ConnectionT]):
    """One effective server."""

    name: str
    source: Literal["service", "workspace"]
    state: ServerState
    definition: StdioDefinition | HttpDefinition | None
    """None only for a stored row that no longer validates; ``problem`` says so."""
    published: Published[ConnectionT] | None = None
    """Also set while a lost connection recovers: the catalog stays, calls answer ``server-not-connected``."""
    problem: Problem | None = None
    """Why it does not serve, or why its newest catalog was not taken."""

    @property
    def is_connected(self) -> bool:
        """Whether calls can be sent."""
        return self.state is ServerState.CONNECTED and self.published is not None


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot(Generic[ConnectionT]):
    """Every effective server of a workspace, by name."""

    servers: Mapping[str, ServerSnapshot[ConnectionT]]

    def with_server(self, server: ServerSnapshot[ConnectionT]) -> "WorkspaceSnapshot[ConnectionT]":
        """Return the snapshot with this server put in the place of the one of its name."""
        return WorkspaceSnapshot(MappingProxyType({**self.servers, server.name: server}))

    def without_server(self, name: str) -> "WorkspaceSnapshot[ConnectionT]":
        """Return the snapshot without the server."""
        return WorkspaceSnapshot(
            MappingProxyType({key: value for key, value in self.servers.items() if key != name})
        )
