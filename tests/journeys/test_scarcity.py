"""A daemon that may have no more descriptors, processes or disk, and then has. SPEC §limits, §state."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from typing_extensions import override

from tests.support.daemon import Daemon
from tests.support.peers.programs import SCRIPTED, http_definition, http_peer, scripted_definition
from tests.support.processes import peers_of, processor_seconds

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

IS_SUPERUSER = os.geteuid() == 0
USER, CAPABILITIES = 54321, "+dac_override,+dac_read_search"
"""Somebody that nobody is, and what they may all the same."""


@pytest.fixture(scope="module")
async def served(daemon: Daemon, scripted_url: str) -> Daemon:
    """A daemon whose workspace ``w`` has a child and a server over HTTP; each test leaves it so."""
    await daemon.attach("w", scripted_definition("kept", read=["echo"]))
    await daemon.attach("w", http_definition("web", scripted_url, read=["echo"]))
    return daemon


async def require_standing(daemon: Daemon) -> None:
    """All is as it was: both servers answer, nothing else is there, and a change can be made."""
    for name in ("kept", "web"):
        assert await daemon.call_text("w", name, "echo", text=name) == name
    await daemon.attach("w", scripted_definition("fresh"))
    assert (await daemon.act("w", "workspace.mcp.detach", name="fresh"))["status"] == 200
    states = {name: server["state"] for name, server in (await daemon.servers("w")).items()}
    assert states == {"kept": "connected", "web": "connected"}
    with anyio.fail_after(15):
        while len(peers_of(daemon.pid)) != 1:
            await anyio.sleep(0.02)


def _open(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def descriptors(daemon: Daemon) -> int:
    """Return how many are open once those of earlier clients are closed."""
    counts = [0]
    with anyio.fail_after(10):
        while len(counts) < 5 or len(set(counts[-5:])) > 1:
            counts.append(_open(daemon.pid))
            await anyio.sleep(0.02)
    return counts[-1]


@contextmanager
def limited(daemon: Daemon, kind: int, soft: int) -> Generator[None]:
    """Let the running daemon have no more than this inside the block."""
    before = resource.prlimit(daemon.pid, kind)
    resource.prlimit(daemon.pid, kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(daemon.pid, kind, before)


@pytest.mark.spec("limits", "problems")
@pytest.mark.parametrize("room", [0, 1, 2, 4])
async def test_without_descriptors_new_servers_are_unavailable_and_the_others_serve(
    served: Daemon, room: int
) -> None:
    with http_peer(SCRIPTED, "good") as elsewhere:
        async with served.client() as client:

            async def act(kind: str, **params: Any) -> httpx2.Response:
                action = {"kind": f"workspace.mcp.{kind}", **params}
                return await client.post("/v1/workspaces/w/actions", json=action)

            # This client's connection is there already.
            assert (await act("list")).status_code == 200
            with limited(served, resource.RLIMIT_NOFILE, await descriptors(served) + room):
                stdio = (await act("attach", server=scripted_definition("child"))).json()
                http = (await act("attach", server=http_definition("new", elsewhere))).json()
                echo = {"server": "kept", "tool": "echo", "arguments": {"text": "x"}}
                assert (await act("call", **echo)).json()["status"] == 200
        assert stdio["code"] == "server-unavailable", stdio
        assert http["code"] == "server-unavailable" if room == 0 else http["status"] == 201, http
        if room:
            await served.act("w", "workspace.mcp.detach", name="new")
    await require_standing(served)


@pytest.mark.spec("limits")
async def test_clients_beyond_the_descriptors_are_turned_away_and_later_ones_served(served: Daemon) -> None:
    async with AsyncExitStack() as clients:
        with limited(served, resource.RLIMIT_NOFILE, await descriptors(served) + 3):
            with suppress(httpx2.TransportError):
                for _ in range(10):
                    client = await clients.enter_async_context(served.client())
                    await client.get("/healthz")
            for _ in range(20):
                with pytest.raises(httpx2.TransportError), anyio.fail_after(10):
                    await served.act("w", "workspace.mcp.list")
    await require_standing(served)


@pytest.mark.spec("limits")
async def test_a_limit_below_what_is_open_costs_no_processor_and_ends_with_the_limit(served: Daemon) -> None:
    url = urlsplit(served.url)
    async with served.client() as client, AsyncExitStack() as waiting:
        assert (await client.get("/healthz")).status_code == 200
        with limited(served, resource.RLIMIT_NOFILE, 3):
            streams = [
                await waiting.enter_async_context(await anyio.connect_tcp(url.hostname or "", url.port or 0))
                for _ in range(3)
            ]
            with anyio.fail_after(10):
                while "no-client-can-be-accepted" not in served.log:
                    await anyio.sleep(0.02)
            before, began = processor_seconds(served.pid), time.monotonic()
            # Whom it has already, it serves.
            while time.monotonic() - began < 1:
                assert (await client.get("/healthz")).status_code == 200
                await anyio.sleep(0.1)
            spent, passed = processor_seconds(served.pid) - before, time.monotonic() - began
            assert spent < passed / 4, (spent, passed)
        for stream in streams:
            await stream.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with anyio.fail_after(10):
                assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")
    await require_standing(served)


class _Unprivileged(Daemon):
    """A daemon that limits of processes hold for: of another user where the tests are the superuser's.

    The file permissions of the tests' user are theirs too.
    """

    @override
    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        self.directory.mkdir(parents=True, exist_ok=True)
        if IS_SUPERUSER:
            os.chown(self.directory, USER, USER)
        with self.log_file.open("ab") as log:
            command = [*_as_user(), sys.executable, "-m", "app", "serve"]
            environment = self._environment()
            return subprocess.Popen(
                command, cwd=self.directory, env=environment, stdout=log, stderr=log, start_new_session=True
            )


def _as_user() -> list[str]:
    if not IS_SUPERUSER:
        return []
    user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    return [*user, "--inh-caps", CAPABILITIES, "--ambient-caps", CAPABILITIES]


@contextmanager
def few_processes(daemon: Daemon) -> Generator[None]:
    """Let the daemon start none inside the block: it alone is more than the one that its user may have."""

    def may_have(count: str) -> None:
        # By the daemon's own user: for another's process one needs a right that not every superuser has.
        limit = ["prlimit", "--pid", str(daemon.pid), f"--nproc={count}:"]
        subprocess.run([*_as_user(), *limit], check=True)

    may_have("1")
    yield
    may_have(str(resource.getrlimit(resource.RLIMIT_NPROC)[0]).replace("-1", "unlimited"))


def _through_shell(name: str) -> dict[str, Any]:
    """Return a definition whose executable this user may execute."""
    definition = scripted_definition(name)
    args = ["-c", 'exec "$0" "$@"', definition["command"], *definition["args"]]
    return {**definition, "command": "/bin/sh", "args": args}


@pytest.mark.spec("limits", "problems")
@pytest.mark.skipif(
    IS_SUPERUSER and shutil.which("setpriv") is None, reason="nothing limits the superuser's processes"
)
async def test_without_processes_new_children_are_unavailable_and_the_others_serve(
    tmp_path: Path, scripted_url: str
) -> None:
    daemon = await _Unprivileged(tmp_path / "daemon").start()
    try:
        await daemon.attach("w", http_definition("web", scripted_url, read=["echo"]))
        await daemon.attach("w", _through_shell("kept"))
        with few_processes(daemon):
            refused = await daemon.act("w", "workspace.mcp.attach", server=_through_shell("child"))
            assert (refused["code"], refused["retryable"]) == ("server-unavailable", True), refused
            assert await daemon.call_text("w", "web", "echo", text="x") == "x"
            await daemon.attach("w", http_definition("more", scripted_url))
        await daemon.attach("w", _through_shell("child"))
        states = {name: server["state"] for name, server in (await daemon.servers("w")).items()}
        assert states == dict.fromkeys(("web", "more", "kept", "child"), "connected")
        assert await daemon.stop() == 0
    finally:
        daemon.close()


@contextmanager
def damaged(daemon: Daemon) -> Generator[None]:
    """Have the pages of the database be noise inside the block; its write-ahead log has nothing of them."""
    file = daemon.home / "plurnk.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(b"\xa5" * len(whole))
    try:
        yield
    finally:
        with file.open("r+b") as opened:
            opened.write(whole)


@contextmanager
def full(daemon: Daemon) -> Generator[None]:
    """Have no file of the daemon grow: neither its write-ahead log nor the log that it writes for people."""
    with limited(daemon, resource.RLIMIT_FSIZE, 0):
        yield


@pytest.mark.spec("state", "lifecycle")
@pytest.mark.parametrize("fault", [full, damaged], ids=lambda each: each.__name__)
async def test_a_database_that_fails_costs_changes_alone_and_only_while_it_fails(
    served: Daemon, fault: Any
) -> None:
    with fault(served):
        for kind, params in {
            "attach": {"server": scripted_definition("new")},
            "replace": {"server": scripted_definition("kept", read=[])},
            "detach": {"name": "web"},
        }.items():
            refused = await served.act("w", f"workspace.mcp.{kind}", **params)
            assert (refused["code"], refused["retryable"]) == ("store-unavailable", True), refused
        for name in ("kept", "web"):
            assert await served.call_text("w", name, "echo", text=name) == name
    await require_standing(served)
