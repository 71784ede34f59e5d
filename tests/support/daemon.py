"""The real daemon as a process: on a home of its own and any port, asked over its public HTTP API. SPEC §cli.

Nothing here imports the daemon's code: a journey sees what a user sees.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import anyio
import httpx2

from tests.support.sse import EventReader

Json = dict[str, Any]
START_SECONDS = 20.0
STOP_SECONDS = 20.0
TOKEN = "operator-token-of-the-journeys"
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Loading certificates takes longer than most requests; the daemon serves plain HTTP."""


class DaemonEndedError(Exception):
    """The daemon ended although it was expected to serve; carries its exit status and its log."""

    def __init__(self, status: int, log: str) -> None:
        super().__init__(f"the daemon ended with {status}:\n{log}")
        self.status = status
        self.log = log


@dataclass
class Daemon:
    """A daemon on its home. ``start`` and ``stop`` may alternate; the home and the log live on."""

    directory: Path
    """The working directory; it holds ``home`` and ``daemon.log``."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the daemon's environment has beside the defaults of ``_environment``."""
    program: tuple[str, ...] = (sys.executable, "-m", "app")
    process: subprocess.Popen[bytes] | None = None
    url: str = ""
    token: str = TOKEN

    @property
    def home(self) -> Path:
        """The daemon's ``PLURNK_HOME``."""
        return self.directory / "home"

    @property
    def log_file(self) -> Path:
        """Where standard output and standard error of every start go."""
        return self.directory / "daemon.log"

    @property
    def log(self) -> str:
        """Everything the daemon wrote to its terminal so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        assert self.process is not None
        return self.process.pid

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
        ours = {"PLURNK_HOME": str(self.home), "PLURNK_PORT": "0", "PLURNK_TOKEN": self.token}
        return {**inherited, **ours, **self.environment}

    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Return a new process of the daemon's command on this home; nobody waits for it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                [*self.program, *(arguments or ("serve",))],
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def spawn_captured(self, *arguments: str) -> str:
        """Return what one short command of the daemon prints on this home.

        Raises:
            CalledProcessError: it failed.
        """
        command = [sys.executable, "-m", "app", *arguments]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout.strip()

    async def start(self) -> Self:
        """Serve, and return once ``/readyz`` says so.

        Raises:
            DaemonEndedError: it ended instead.
            TimeoutError: it did neither.
        """
        announced = self.home / "daemon.json"
        announced.unlink(missing_ok=True)
        self.process = self.spawn()
        with anyio.fail_after(START_SECONDS):
            while True:
                self._raise_if_ended()
                if announced.exists() and await self._is_ready(announced):
                    return self
                await anyio.sleep(0.02)

    def _raise_if_ended(self) -> None:
        assert self.process is not None
        if (status := self.process.poll()) is not None:
            raise DaemonEndedError(status, self.log)

    async def _is_ready(self, announced: Path) -> bool:
        try:
            self.url = announced_address(announced)
            async with self.client() as client:
                return (await client.get("/readyz")).status_code == 200
        except (httpx2.TransportError, ValueError, KeyError):
            return False

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and return the exit status; the process is gone."""
        assert self.process is not None
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Return the exit status once the process is gone, killing it where it stays too long."""
        assert self.process is not None
        deadline = time.monotonic() + STOP_SECONDS
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                self.process.kill()
                raise DaemonEndedError(self.process.wait(), f"still there after {STOP_SECONDS} s\n{self.log}")
            await anyio.sleep(0.02)
        return self.process.wait()

    def close(self) -> None:
        """Leave no process behind, whatever happened."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def client(self) -> httpx2.AsyncClient:
        """Return an HTTP client with the operator's token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=_TLS
        )

    async def post(self, workspace: str, kind: str, **params: Any) -> httpx2.Response:
        """Return the raw answer of the REST twin to one action."""
        async with self.client() as client:
            return await client.post(f"/v1/workspaces/{workspace}/actions", json={"kind": kind, **params})

    async def act(self, workspace: str, kind: str, **params: Any) -> Json:
        """Return the body that answers one action: its result or its Problem."""
        return (await self.post(workspace, kind, **params)).json()

    async def attach(self, workspace: str, definition: Mapping[str, Any]) -> Json:
        """Attach a server and return its summary.

        Raises:
            AssertionError: it was refused.
        """
        body = await self.act(workspace, "workspace.mcp.attach", server=dict(definition))
        assert body.get("status") == 201, body
        return body["server"]

    async def servers(self, workspace: str) -> dict[str, Json]:
        """Return the summaries of ``workspace.mcp.list`` by name."""
        body = await self.act(workspace, "workspace.mcp.list")
        assert "servers" in body, body
        return {server["name"]: server for server in body["servers"]}

    async def call_text(self, workspace: str, server: str, tool: str, **arguments: Any) -> str:
        """Return the joined text of a call's result; the tool must have effect ``read``."""
        body = await self.act(workspace, "workspace.mcp.call", server=server, tool=tool, arguments=arguments)
        assert body.get("status") == 200, body
        assert body.get("isError") is False, body
        return "\n".join(part["text"] for part in body["content"] if part["type"] == "text")

    @asynccontextmanager
    async def run(self, body: Mapping[str, Any]) -> AsyncGenerator[AsyncIterator[Json]]:
        """Post one AG-UI run and give its events as they come; leaving early disconnects."""
        async with self.client() as client, client.stream("POST", "/", json=body) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield events_of(response)

    async def run_action(self, workspace: str, kind: str, **params: Any) -> list[Json]:
        """Return every event of one AG-UI run of an action."""
        async with self.run(run_input(workspace, {"kind": kind, **params})) as events:
            return [event async for event in events]


@asynccontextmanager
async def running_daemon(
    directory: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[Daemon]:
    """Start a daemon in the directory for the block; none is left afterwards."""
    daemon = Daemon(directory, environment)
    try:
        yield await daemon.start()
    finally:
        daemon.close()


def announced_address(announced: Path) -> str:
    """Return the base URL that ``daemon.json`` tells the command line."""
    return json.loads(announced.read_text())["address"]


async def events_of(response: httpx2.Response) -> AsyncIterator[Json]:
    """Give the AG-UI events of a streaming answer, each as soon as it is whole."""
    reader = EventReader()
    async for chunk in response.aiter_raw():
        for data in reader.feed(chunk):
            yield json.loads(data)


def run_input(workspace: str, action: Mapping[str, Any] | None, **members: Any) -> Json:
    """Return an AG-UI 1.0 RunAgentInput for the daemon; ``members`` add to it or replace parts."""
    plurnk: Json = {"workspace": workspace}
    if action is not None:
        plurnk["action"] = dict(action)
    base: Json = {"threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0", "messages": []}
    return {**base, "forwardedProps": {"plurnk": plurnk}, **members}
