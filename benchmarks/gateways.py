"""The gateways people would pick instead, each before the same servers. Versions are pinned: figures name them."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.answers import LEGACY
from benchmarks.environments import NODE, node_peer, python_peer
from benchmarks.load import Client, request
from benchmarks.processes import GATEWAY_CORE, ROOT, Process
from benchmarks.targets import (
    ARGUMENTS,
    CLIENT,
    STDIO_SERVER,
    Json,
    Target,
    answering,
    free_port,
    mcp_call,
    posting,
)

SKELETON = "bare uvicorn + aiohttp"
RELAY = "relay of bytes"
HUB_VERSION, MCPO_VERSION, PROXY_VERSION, FORGE_VERSION = "4.2.1", "0.0.20", "0.13.0", "1.0.7"
"""ContextForge's is the last that Python 3.11 can run."""
HUB_WARM_S = 10.0
"""Node compiles what is called often: after some ten thousand calls mcp-hub takes two thirds of what it took before."""


@dataclass(frozen=True)
class Gateway:
    """One peer: how it is started before servers, and how a call of its first one looks."""

    name: str
    start: Callable[[Sequence[str], Path], Awaitable[Target]]
    """Takes the servers' URLs and a directory. Raises NotInstalled."""
    version: str


async def _mcp_hub(urls: Sequence[str], directory: Path) -> Target:
    binaries = node_peer("mcp-hub", f"mcp-hub@{HUB_VERSION}")
    port = free_port()
    servers = {f"s{number}": {"url": url} for number, url in enumerate(urls)}
    config = directory / "mcp-hub.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    process = Process(
        [str(NODE), str(binaries / "mcp-hub"), "--port", str(port), "--config", str(config)],
        core=GATEWAY_CORE,
        environment={
            "PATH": f"{NODE.parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory),
        },
        cwd=directory,
        log=directory / "mcp-hub.log",
    )
    body = json.dumps({"server_name": "s0", "tool": "tool-0", "arguments": ARGUMENTS}).encode()
    hub = f"http://127.0.0.1:{port}/api"
    started = await _started("mcp-hub", process, f"{hub}/servers/tools", body)
    listing = f"GET /api/servers HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    run = posting(hub, listing, expected=b'"s19"')
    return replace(started, warm_s=HUB_WARM_S, listing=Target("mcp-hub", process, run, warm_s=HUB_WARM_S))


async def _mcpo(urls: Sequence[str], directory: Path) -> Target:
    binaries = python_peer("mcpo", f"mcpo=={MCPO_VERSION}", "mcp<2", "fastapi==0.115.14")
    port = free_port()
    servers = {f"s{number}": {"type": "streamable-http", "url": url} for number, url in enumerate(urls)}
    config = directory / "mcpo.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    process = Process(
        [str(binaries / "mcpo"), "--port", str(port), "--host", "127.0.0.1", "--config", str(config)],
        core=GATEWAY_CORE,
        environment={"HOME": str(directory), "PYTHONPATH": ""},
        cwd=directory,
        log=directory / "mcpo.log",
    )
    return await _started(
        "mcpo", process, f"http://127.0.0.1:{port}/s0/tool-0", json.dumps(ARGUMENTS).encode()
    )


async def _fastmcp(urls: Sequence[str], directory: Path) -> Target:
    port = free_port()
    process = Process(
        [sys.executable, "-m", "benchmarks.peers.fastmcp_proxy", str(port), *urls],
        core=GATEWAY_CORE,
        log=directory / "fastmcp.log",
    )
    return await _started_with(
        "FastMCP proxy", process, mcp_call(f"http://127.0.0.1:{port}/mcp", "s0_tool-0"), port
    )


async def _context_forge(urls: Sequence[str], directory: Path) -> Target:
    """Start it without sign-in, with its own defaults otherwise, and register the servers as an administrator does."""
    binaries = python_peer("contextforge", f"mcp-contextforge-gateway=={FORGE_VERSION}")
    port, key = free_port(), "a key of the bench, for a gateway that lives for one run on loopback"
    process = Process(
        [str(binaries / "mcpgateway"), "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
        core=GATEWAY_CORE,
        environment={
            "HOME": str(directory),
            "PYTHONPATH": "",
            "DATABASE_URL": f"sqlite:///{directory}/contextforge.db",
            "AUTH_REQUIRED": "false",
            "ALLOW_UNAUTHENTICATED_ADMIN": "true",
            "CSRF_ENABLED": "false",
            "SSRF_ALLOW_LOCALHOST": "true",
            "JWT_SECRET_KEY": key,
            "AUTH_ENCRYPTION_SECRET": key,
        },
        cwd=directory,
        log=directory / "contextforge.log",
    )
    url = f"http://127.0.0.1:{port}"
    try:
        health = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        await answering(url, health, expected=b"", process=process)
        client = Client(url)
        for number, server in enumerate(urls):
            gateway = {"name": f"s{number}", "url": server, "transport": "STREAMABLEHTTP"}
            await client.send(request(f"{url}/gateways", json.dumps(gateway).encode()))
        client.close()
    except BaseException:
        process.stop()
        raise
    params = {"name": "s0-tool-0", "arguments": ARGUMENTS}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    started = await _started("ContextForge", process, f"{url}/rpc", json.dumps(call).encode())
    return replace(started, most_in_flight=32)


async def _mcp_proxy(_urls: Sequence[str], directory: Path) -> Target:
    """Start it before a child of its own, and open the one session that it serves over Streamable HTTP."""
    binaries = python_peer("mcp-proxy", f"mcp-proxy=={PROXY_VERSION}")
    port = free_port()
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "-e",
        "PYTHONPATH",
        str(ROOT),
        "--log-level",
        "ERROR",
    ]
    process = Process(
        [str(binaries / "mcp-proxy"), *options, "--", *STDIO_SERVER],
        core=GATEWAY_CORE,
        environment={"HOME": str(directory), "PYTHONPATH": ""},
        cwd=directory,
        log=directory / "mcp-proxy.log",
    )
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        begin = _legacy(
            "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}, id=1
        )
        await answering(url, request(url, begin, _ACCEPT), expected=b"serverInfo", process=process)
        client = Client(url)
        head = (await client.send(request(url, begin, _ACCEPT))).decode().lower()
        session = [("Mcp-Session-Id", head.partition("mcp-session-id: ")[2].partition("\r\n")[0])]
        headers = [*_ACCEPT, *session, ("MCP-Protocol-Version", LEGACY)]
        await client.send(request(url, _legacy("notifications/initialized", {}), headers))
        client.close()
    except BaseException:
        process.stop()
        raise
    params = {"name": "tool-0", "arguments": ARGUMENTS}
    # What shares a session must not share an id.
    calls = [request(url, _legacy("tools/call", params, id=number), headers) for number in range(2, 34)]
    return await _started_with("mcp-proxy", process, calls, port)


_ACCEPT = [("Accept", "application/json, text/event-stream")]


def _legacy(method: str, params: Json, **more: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()


async def _started(name: str, process: Process, url: str, body: bytes) -> Target:
    port = int(urlsplit(url).port or 0)
    return await _started_with(name, process, request(url, body), port)


async def _started_with(name: str, process: Process, data: bytes | Sequence[bytes], port: int) -> Target:
    url = f"http://127.0.0.1:{port}"
    try:
        await answering(url, data if isinstance(data, bytes) else data[0], expected=b"xxx", process=process)
    except BaseException:
        process.stop()
        raise
    return Target(name, process, posting(url, data, expected=b"xxx"), may_fail=True)


async def skeleton(urls: Sequence[str]) -> Target:
    """Return the least gateway of the daemon's own libraries (``benchmarks.peers.skeleton``)."""
    port = free_port()
    process = Process(
        [sys.executable, "-m", "benchmarks.peers.skeleton", str(port), urls[0]], core=GATEWAY_CORE
    )
    body = json.dumps({"tool": "tool-0", "arguments": ARGUMENTS}).encode()
    return await _started(SKELETON, process, f"http://127.0.0.1:{port}/", body)


async def relay(urls: Sequence[str]) -> Target:
    """Return two hops and nothing between them (``benchmarks.peers.relay``)."""
    port = free_port()
    process = Process([sys.executable, "-m", "benchmarks.peers.relay", str(port), urls[0]], core=GATEWAY_CORE)
    path = urlsplit(urls[0]).path
    return await _started_with(RELAY, process, mcp_call(f"http://127.0.0.1:{port}{path}"), port)


QUICK = (
    Gateway("mcp-hub", _mcp_hub, HUB_VERSION),
    Gateway("mcpo", _mcpo, MCPO_VERSION),
    Gateway("FastMCP proxy", _fastmcp, version("fastmcp")),
)
FULL = (*QUICK, Gateway("ContextForge", _context_forge, FORGE_VERSION))
STDIO = (Gateway("mcp-proxy", _mcp_proxy, PROXY_VERSION),)
"""Those of one server that is a child process."""
