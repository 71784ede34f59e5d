"""The servers of a soak: some die and come back, one is behind sign-ins. SPEC §definition."""

import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio

from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.protected_server import ProtectedServer, protected_server

PROGRAM: Final = Path(__file__).parent / "peer.py"
LIBRARY_PROGRAM: Final = Path(__file__).parent / "library_peer.py"
LIBRARIES: Final = ("fastmcp", "sdk")
"""What the servers of these names are written with."""
READ: Final = ("echo", "slow", "ask", "work", "grow", "die")
"""``write`` is left to a person."""
DEFAULT: Final = "shared"
"""The name of the service default."""
NAMES: Final = ("child", "guarded", DEFAULT, "web", "web-two", *LIBRARIES)

Definition = dict[str, Any]


class HttpPeer:
    """One process on one port, however often it dies."""

    def __init__(self, log: Path, *program: str) -> None:
        """Take the program that is run with the port and the log."""
        self._program = program or ("-S", str(PROGRAM), "http")
        self._log = log
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it serves, now or later."""
        return f"http://127.0.0.1:{self._port}/mcp"

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Have it listen."""
        command = [sys.executable, *self._program, str(self._port), str(self._log)]
        self._process = subprocess.Popen(  # noqa: ASYNC220 a start takes a millisecond
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self._port = int(await anyio.to_thread.run_sync(self._process.stdout.readline))
        self._process.stdout.close()

    def kill(self) -> None:
        """Have it be gone at once, whatever it was doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class Peers:
    """All servers that definitions may name."""

    log: Path
    """One line for each call that a peer carried out: its text."""
    web: tuple[HttpPeer, ...]
    libraries: Mapping[str, HttpPeer]
    """The servers that are written with a library, by their name; they live on."""
    granting: AuthorizationServer
    guarded: ProtectedServer

    @property
    def default(self) -> HttpPeer:
        """The server of the service default."""
        return self.web[0]

    def definition(self, name: str, rng: Random) -> Definition:
        """Return one of the definitions that a server of this name may have."""
        variant = str(rng.randrange(4))
        read = {"name": name, "read": list(READ)}
        match name:
            case "child":
                args = ["-S", str(PROGRAM), "stdio", str(self.log)]
                child = {"transport": "stdio", "command": sys.executable, "args": args}
                return {**read, **child, "env": {"VARIANT": variant}}
            case "guarded":
                authorization = {"type": "oauth", "redirectUrl": REDIRECT}
                guarded = {"transport": "http", "url": self.guarded.url, "authorization": authorization}
                return {"name": name, "read": ["echo"], **guarded, "headers": {"X-Variant": variant}}
            case "fastmcp" | "sdk":
                url = self.libraries[name].url
                return {**read, "read": ["echo", "ask"], "transport": "http", "url": url}
            case _:
                url = rng.choice(self.web).url
                return {**read, "transport": "http", "url": url, "headers": {"X-Variant": variant}}

    def carried_out(self) -> Counter[str]:
        """Return how often each call was carried out."""
        return Counter(self.log.read_text().split()) + Counter[str]() if self.log.exists() else Counter()


@asynccontextmanager
async def peers(directory: Path, count: int = 3) -> AsyncGenerator[Peers]:
    """Run the servers inside the block."""
    log = directory / "carried-out"
    web = tuple(HttpPeer(log) for _ in range(count))
    libraries = {name: HttpPeer(log, str(LIBRARY_PROGRAM), name) for name in LIBRARIES}
    async with AsyncExitStack() as stack:
        granting = await stack.enter_async_context(authorization_server())
        guarded = await stack.enter_async_context(protected_server(granting))
        async with anyio.create_task_group() as group:
            for peer in (*web, *libraries.values()):
                stack.callback(peer.kill)
                group.start_soon(peer.start)
        yield Peers(log, web, libraries, granting, guarded)
