"""The published servers of the wall: which, how each is installed and started, what is asked of it. SPEC §revision.

Every one has an environment of its own, made when it is its turn; a registry that cannot be reached skips it.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from typing_extensions import override

from tests.support.official_client import NODE, npm_install
from tests.support.peers.programs import FASTMCP_SERVER, HERE, Definition, http_definition

INSTALL_SECONDS = 300
START_SECONDS = 40.0
UNREACHABLE = (
    *("NewConnectionError", "ConnectTimeout", "ReadTimeout", "ProxyError", "timed out"),
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT"),
)
"""How pip and npm tell that a registry cannot be reached; one that lacks a pinned release is a failure."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a server and what its answer has in it."""

    kind: str
    params: Mapping[str, Any]
    expected: str


@dataclass(frozen=True, slots=True)
class Peer:
    """One published server over one transport. In texts, ``$DIR``, ``$PAGE`` and ``$PORT`` are the run's."""

    package: str
    version: str
    registry: Literal["PyPI", "npm"]
    over: Literal["stdio", "HTTP", "SSE"]
    command: tuple[str, ...]
    """The program after the interpreter of the environment."""
    path: str = "/mcp"
    """Of the URL, where the program does not print one."""
    beside: tuple[str, ...] = ()
    """What else is installed."""
    tools: tuple[str, ...] = ()
    """A few that it must list; the first ones of ``calls`` are among them."""
    requests: tuple[Call, ...] = ()
    note: str = ""
    answered: str = ""
    """What a refused one answers to ``server/discover``, as our Problem words it; empty for the others."""
    revisions: tuple[str, ...] = field(default=())
    """Those that a refused one names."""

    @override
    def __str__(self) -> str:
        return f"{self.package} {self.version} {self.over}"

    @property
    def name(self) -> str:
        """The server's name in a workspace."""
        return self.package.rpartition("/")[2].removeprefix("mcp-").removeprefix("server-")


def _call(tool: str, expected: str, **arguments: Any) -> Call:
    return Call("workspace.mcp.call", {"tool": tool, "arguments": arguments}, expected)


def _read(uri: str, expected: str) -> Call:
    return Call("workspace.mcp.read", {"uri": uri}, expected)


_FASTMCP = Peer(
    *("fastmcp", "4.2.3", "PyPI", "stdio"),
    command=(str(FASTMCP_SERVER), "stdio"),
    tools=("echo", "add"),
    requests=(
        _read("fastmcp:///resources/memo:%2F%2Fwelcome", "welcome"),
        _read("fastmcp:///prompts/greet?name=Ada", "greeting for Ada"),
        Call(
            "workspace.mcp.complete",
            {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}},
            "alan",
        ),
        _call("add", "42", a=40, b=2),
    ),
    note="a server of our own on it",
)
_CONTEXT7 = Peer(
    *("@upstash/context7-mcp", "4.1.1", "npm", "stdio"),
    command=("@upstash/context7-mcp/dist/index.js",),
    tools=("resolve-library-id", "query-docs"),
    note="attached and listed only: its calls ask a service on the internet",
)
_EVERYTHING = "@modelcontextprotocol/server-everything"
_EVERYTHING_PROGRAM = f"{_EVERYTHING}/dist/index.js"
_WAITS = "it waits for initialize or a session, with which earlier revisions begin"
_UNKNOWN = "JSON-RPC error -32601: it does not know the method, as servers of earlier revisions do"

MODERN = (
    Peer(
        *("mcp-server-time", "2026.10.19", "PyPI", "stdio"),
        command=("-m", "mcp_server_time", "--local-timezone", "UTC"),
        tools=("get_current_time", "convert_time"),
        requests=(
            _call(
                "convert_time",
                "21:00",
                source_timezone="UTC",
                time="12:00",
                target_timezone="Asia/Tokyo",
            ),
        ),
    ),
    Peer(
        *("mcp-server-git", "2026.10.19", "PyPI", "stdio"),
        command=("-m", "mcp_server_git", "--repository", "$DIR/repository"),
        tools=("git_status", "git_log"),
        requests=(_call("git_log", "The first commit", repo_path="$DIR/repository"),),
    ),
    Peer(
        *("mcp-server-fetch", "2026.10.24", "PyPI", "stdio"),
        command=("-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"),
        tools=("fetch",),
        requests=(
            _read("fetch:///prompts/fetch?url=$PAGE", "A page of this run"),
            _call("fetch", "A page of this run", url="$PAGE"),
        ),
    ),
    _FASTMCP,
    Peer(
        *("fastmcp", "4.2.3", "PyPI", "HTTP"),
        command=(str(FASTMCP_SERVER), "http"),
        tools=_FASTMCP.tools,
        requests=_FASTMCP.requests,
        note=_FASTMCP.note,
    ),
    _CONTEXT7,
    Peer(
        *("@upstash/context7-mcp", "4.1.1", "npm", "HTTP"),
        command=("@upstash/context7-mcp/dist/index.js", "--transport", "http", "--port", "$PORT"),
        tools=_CONTEXT7.tools,
        note=_CONTEXT7.note,
    ),
)
"""Servers that speak 2026-07-28."""

REFUSED = (
    Peer(
        *(_EVERYTHING, "2026.8.31", "npm", "stdio"),
        command=(_EVERYTHING_PROGRAM, "stdio"),
        answered=_UNKNOWN,
    ),
    Peer(
        *(_EVERYTHING, "2026.8.31", "npm", "HTTP"),
        command=(_EVERYTHING_PROGRAM, "streamableHttp"),
        answered=f"JSON-RPC error -32000: {_WAITS}",
    ),
    Peer(
        *(_EVERYTHING, "2026.8.31", "npm", "SSE"),
        command=(_EVERYTHING_PROGRAM, "sse"),
        path="/sse",
        answered=(
            "HTTP status 404: nothing takes a POST there: a wrong path, or the HTTP+SSE transport of revision"
            " 2024-11-05"
        ),
    ),
    Peer(
        *("@modelcontextprotocol/server-pdf", "2.0.4", "npm", "stdio"),
        command=("@modelcontextprotocol/server-pdf/dist/index.js", "--stdio"),
        answered=_UNKNOWN,
    ),
    Peer(
        *("@modelcontextprotocol/server-pdf", "2.0.4", "npm", "HTTP"),
        command=("@modelcontextprotocol/server-pdf/dist/index.js",),
        answered=(
            "JSON-RPC error -32000: it speaks 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05, 2024-10-07"
        ),
        revisions=("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"),
    ),
    Peer(
        *("mcp", "1.30.0", "PyPI", "HTTP"),
        command=(str(HERE / "sdk_v1_server.py"),),
        answered=f"JSON-RPC error -32600: {_WAITS}",
        note="a server of our own on it",
    ),
    Peer(
        *("mcp-server-time", "2025.9.25", "PyPI", "stdio"),
        command=("-m", "mcp_server_time", "--local-timezone", "UTC"),
        # That release sets no upper bound, and does not start on an SDK from after its time.
        beside=("mcp<2",),
        answered=(
            "JSON-RPC error -32602: it refuses the parameters of a method that it does not know, as servers of"
            " earlier revisions do"
        ),
    ),
)
"""Servers that speak earlier revisions only."""


def environment_with(directory: Path, *requirements: str) -> Path:
    """Return the Python of a fresh environment that has the packages.

    Raises:
        Skipped: the registry cannot be reached.
        RuntimeError: it has no such release, or the release cannot be installed.
    """
    # The pip of this environment fills that one: to give each its own takes as long as to install a server.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    python = directory / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20", "--no-compile"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, *requirements],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        _skip_or_fail(f"PyPI cannot be reached for {', '.join(requirements)}", done.stderr)
    return python


def _packages(directory: Path, requirement: str) -> Path:
    """Return the ``node_modules`` of a fresh directory that has the package; skip as ``environment_with``."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text('{"name": "peer", "private": true}')
    try:
        npm_install(directory, requirement)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        _skip_or_fail(f"npm cannot be reached for {requirement}", str(error))
    return directory / "node_modules"


def _skip_or_fail(sentence: str, said: str) -> None:
    if any(sign in said for sign in UNREACHABLE):
        pytest.skip(f"{sentence}; nothing is said about it")
    raise RuntimeError(said)


class Environments:
    """The environments of the wall, each made once and when it is its turn."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ready: dict[tuple[str, str], Path] = {}

    def command(self, peer: Peer) -> list[str]:
        """Return the command that starts the peer, installed. Skips as ``environment_with``."""
        place = self._directory / f"{peer.name}-{peer.version}"
        key = (peer.package, peer.version)
        if peer.registry == "PyPI":
            if key not in self._ready:
                requirement = f"{peer.package}=={peer.version}"
                self._ready[key] = environment_with(place, requirement, *peer.beside)
            return [str(self._ready[key]), *peer.command]
        if key not in self._ready:
            self._ready[key] = _packages(place, f"{peer.package}@{peer.version}")
        program, *arguments = peer.command
        return [str(NODE), str(self._ready[key] / program), *arguments]


@contextmanager
def running(peer: Peer, command: list[str]) -> Generator[Definition]:
    """Give the definition of the peer; one over HTTP runs meanwhile and is gone afterwards."""
    if peer.over == "stdio":
        yield {"name": peer.name, "transport": "stdio", "command": command[0], "args": command[1:]}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [word.replace("$PORT", str(port)) for word in command]
    environment = {**os.environ, "PORT": str(port)}
    stdout = subprocess.PIPE if peer.registry == "PyPI" else subprocess.DEVNULL
    with subprocess.Popen(words, env=environment, stdout=stdout, stderr=subprocess.DEVNULL) as process:
        try:
            if process.stdout is not None:
                url = json.loads(process.stdout.readline())["url"]
            else:
                url = f"http://127.0.0.1:{port}{peer.path}"
                _listens(port, process)
            yield http_definition(peer.name, url)
        finally:
            process.kill()


def _listens(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once something listens there.

    Raises:
        RuntimeError: the program ended, or it took too long.
    """
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing listens: exit status {process.poll()}")
