"""What is measured: a started process and how one block of calls reaches the backend through it."""

import json
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import orjson

from benchmarks.answers import MODERN, TOOLS
from benchmarks.load import AnsweredWrong, Client, Run, Sample, body_of, request
from benchmarks.processes import GATEWAY_CORE, LOAD_CORE, ROOT, Process, pinned

TOKEN = "operator-token-of-the-bench"  # noqa: S105 of a daemon that lives for one run on loopback
WORKSPACE = "bench"
START_SECONDS = 90.0
ARGUMENTS = {"text": "hello"}
CLIENT = {"name": "bench", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """One way to do one thing many times."""

    name: str
    process: Process | None
    """Whose tree is charged; None for the floor, which is this process."""
    run: Run
    listing: "Target | None" = None
    """How it lists its servers, where that is to be compared."""
    most_in_flight: int = 1000
    """Beyond which it would only take longer."""
    may_fail: bool = False
    """Whether a scenario that it cannot do goes on without it."""
    warm_s: float = 0.0
    """How long it is called before its first block: a just-in-time compiler has to have seen the calls."""

    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        return time.process_time() if self.process is None else self.process.cpu()


class Backend:
    """The running backend and its counts."""

    def __init__(self, process: Process, directory: Path) -> None:
        self.process = process
        port, tls_port = map(int, process.line().split())
        self.url, self.tls_url = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        self.certificate = directory / "peer.pem"
        """Whom to trust at the second one."""

    def counts(self) -> dict[str, int]:
        """Return how many requests of each method came since the last look."""
        with httpx2.Client(trust_env=False) as client:
            return client.get(f"{self.url}/forget").json()

    def servers(self, number: int, *, way: str = "s", first: int = 0) -> list[str]:
        """Return the URLs of so many servers."""
        return [f"{self.url}/{way}/{each}" for each in range(first, first + number)]


@contextmanager
def backend() -> Generator[Backend]:
    """Run the backend on the load's core."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.backend", "http", directory]
        with Process(command, core=LOAD_CORE, talks=True) as process:
            yield Backend(process, Path(directory))


def mcp_call(url: str, tool: str = "tool-0", arguments: Json | None = None) -> bytes:
    """Return the bytes of one modern ``tools/call``, as the daemon and the SDK send it."""
    params = {"name": tool, "arguments": arguments or ARGUMENTS, "_meta": _META}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = [
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ]
    return request(url, body, headers)


def posting(
    url: str, data: bytes | Sequence[bytes], *, expected: bytes, tls: ssl.SSLContext | None = None
) -> Run:
    """Return a block of these bytes over kept connections, which take turns where there are several."""
    requests = [data] if isinstance(data, bytes) else data
    client = Client(url, tls)

    async def run(in_flight: int, count: int) -> Sample:
        return await client.run(requests, in_flight=in_flight, count=count, expected=expected)

    return run


def floor(url: str, tls: ssl.SSLContext | None = None) -> Target:
    """Return the hand-written client, sending to the backend itself."""
    return Target("floor", None, posting(url, mcp_call(url), expected=b"xxx", tls=tls))


def client(
    name: str, program: str, *where: str, directory: Path, environment: dict[str, str] | None = None
) -> Target:
    """Return a client of ``benchmarks.peers`` on the gateway's core, connected to a URL or a child."""
    command, log = [sys.executable, "-m", f"benchmarks.peers.{program}", *where], directory / f"{program}.log"
    process = Process(command, core=GATEWAY_CORE, talks=True, environment=environment, log=log)
    if process.line() != "ready\n":
        process.stop()
        raise AnsweredWrong(f"{name} did not connect")

    async def run(in_flight: int, count: int) -> Sample:
        process.say(f"{in_flight} {count}")
        line = await anyio.to_thread.run_sync(process.line)
        if not line:
            raise AnsweredWrong(f"{name} ended ({process.popen.wait()}): {log.read_text()[-2000:]}")
        told = json.loads(line)
        return Sample(told["seconds"], tuple(told["latencies"]))

    return Target(name, process, run, may_fail=True)


def free_port() -> int:
    """Return a port that was free a moment ago, for peers that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def answering(url: str, data: bytes, *, expected: bytes, process: Process) -> None:
    """Return once the peer answers the request as expected.

    Raises:
        TimeoutError: it never does.
    """
    client = Client(url)
    with anyio.fail_after(START_SECONDS):
        while True:
            try:
                await client.send(data, expected=expected)
            except Exception:  # not there yet, in whatever way
                if process.popen.poll() is not None:
                    raise
                await anyio.sleep(0.1)
            else:
                client.close()
                return


class Daemon:
    """The gateway: plurnk-mcpd on a home of its own."""

    def __init__(
        self, directory: Path, environment: dict[str, str] | None = None, *, program: str = "app"
    ) -> None:
        """Start it; ``ready`` returns once it serves."""
        self.home = directory / "home"
        directory.mkdir(parents=True, exist_ok=True)
        ours = {"PLURNK_HOME": str(self.home), "PLURNK_PORT": "0", "PLURNK_TOKEN": TOKEN}
        (self.home / "daemon.json").unlink(missing_ok=True)
        self.began = time.perf_counter()
        self.process = Process(
            [sys.executable, "-m", program, "serve"],
            core=GATEWAY_CORE,
            environment={**ours, **(environment or {})},
            cwd=directory,
            log=directory / "daemon.log",
        )
        self.url = ""
        self.ready_after = 0.0
        """Seconds from the start of the process to ``/readyz``."""

    async def ready(self) -> "Daemon":
        """Return the daemon once it serves.

        Raises:
            TimeoutError: it does not.
        """
        announced = self.home / "daemon.json"
        with anyio.fail_after(START_SECONDS):
            while not announced.exists():
                await anyio.sleep(0.005)
        self.url = str(json.loads(announced.read_text())["address"])
        await answering(self.url, self._get("readyz"), expected=b"", process=self.process)
        self.ready_after = time.perf_counter() - self.began
        return self

    def _get(self, path: str) -> bytes:
        return f"GET /{path} HTTP/1.1\r\nHost: {self.url.removeprefix('http://')}\r\n\r\n".encode()

    def action(self, action: Json, workspace: str = WORKSPACE) -> bytes:
        """Return the bytes of one action over REST."""
        url = f"{self.url}/v1/workspaces/{workspace}/actions"
        return request(url, orjson.dumps(action), [("Authorization", f"Bearer {TOKEN}")])

    def agui_run(self, action: Json) -> bytes:
        """Return the bytes of one AG-UI run of an action."""
        body = {
            "threadId": "thread-1",
            "runId": "run-1",
            "protocolVersion": "1.0",
            "messages": [],
            "forwardedProps": {"plurnk": {"workspace": WORKSPACE, "action": action}},
        }
        return request(f"{self.url}/", orjson.dumps(body), [("Authorization", f"Bearer {TOKEN}")])

    async def act(self, client: Client, action: Json, workspace: str = WORKSPACE) -> Json:
        """Return the result of one action."""
        return orjson.loads(body_of(await client.send(self.action(action, workspace))))

    async def attach(self, definitions: Sequence[Json], workspace: str = WORKSPACE) -> None:
        """Attach the servers, one after the other."""
        client = Client(self.url)
        for definition in definitions:
            await self.act(client, {"kind": "workspace.mcp.attach", "server": definition}, workspace)
        client.close()


STDIO_SERVER = pinned(LOAD_CORE, sys.executable, "-m", "benchmarks.backend", "stdio")
"""A command that is the backend over stdio, on the backend's core whoever starts it."""
CALL: Json = {"kind": "workspace.mcp.call", "server": "s0", "tool": "tool-0", "arguments": ARGUMENTS}
LIST: Json = {"kind": "workspace.mcp.list"}
RECONNECT: Json = {"kind": "workspace.mcp.reconnect", "name": "s1"}
_READ = [f"tool-{number}" for number in range(TOOLS)]


def http_definition(name: str, url: str) -> Json:
    """Return a server over HTTP whose tools run without consent."""
    return {"transport": "http", "name": name, "url": url, "read": _READ}


def http_definitions(urls: Sequence[str]) -> list[Json]:
    """Return the servers, named s0, s1, …."""
    return [http_definition(f"s{number}", url) for number, url in enumerate(urls)]


def stdio_definition(name: str) -> Json:
    """Return the same server as a child process."""
    program, *arguments = STDIO_SERVER
    return {
        "transport": "stdio",
        "name": name,
        "command": program,
        "args": arguments,
        "env": {"PYTHONPATH": str(ROOT)},
        "read": _READ,
    }
