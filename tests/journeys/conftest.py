"""The daemon and the real peers that the journeys share."""

import itertools
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, running_daemon
from tests.support.official_client import OfficialClient, installed, official_client
from tests.support.peers.programs import FASTMCP_SERVER, SCRIPTED, SDK_SERVER, http_peer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run the journeys on one loop each module, so that a module's daemon can be shared."""
    return "asyncio"


@pytest.fixture(scope="session")
def sdk_url() -> Generator[str]:
    """The URL of a server on the official SDK."""
    with http_peer(SDK_SERVER) as url:
        yield url


@pytest.fixture(scope="session")
def fastmcp_url() -> Generator[str]:
    """The URL of a server on fastmcp."""
    with http_peer(FASTMCP_SERVER) as url:
        yield url


@pytest.fixture(scope="session")
def scripted_url() -> Generator[str]:
    """The URL of the small good server."""
    with http_peer(SCRIPTED, "good") as url:
        yield url


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One running daemon with its defaults, shared by a module; each test uses a workspace of its own."""
    async with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture
def workspace() -> str:
    """A workspace that no other test uses."""
    return f"workspace-{next(_numbers)}"


NewDaemon = Callable[[Mapping[str, str]], Daemon]


@pytest.fixture
def new_daemon(tmp_path: Path) -> Generator[NewDaemon]:
    """Makes daemons with an environment of their own, not yet started; none is left afterwards."""
    made: list[Daemon] = []

    def make(environment: Mapping[str, str]) -> Daemon:
        made.append(Daemon(tmp_path / f"daemon-{len(made)}", environment))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()


@pytest.fixture(scope="session")
def client_directory(request: pytest.FixtureRequest) -> Path:
    """Where the official client is installed; a run without a registry fails here."""
    assert request.config.cache is not None
    return installed(request.config.cache.mkdir("official-client"))


@pytest.fixture(scope="module")
async def client(client_directory: Path, daemon: Daemon) -> AsyncGenerator[OfficialClient]:
    """The official client under Node, talking to the module's daemon."""
    async with official_client(client_directory, daemon) as client:
        yield client
