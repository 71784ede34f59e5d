"""The gateways people would pick instead, each before the same servers. Versions are pinned: figures name them."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.environments import NODE, node_peer, python_peer
from benchmarks.load import request
from benchmarks.processes import GATEWAY_CORE, Process
from benchmarks.targets import ARGUMENTS, Target, answering, free_port, mcp_call, posting

SKELETON = "bare uvicorn + aiohttp"


@dataclass(frozen=True)
class Gateway:
    """One peer: how it is started before servers, and how a call of its first one looks."""

    name: str
    start: Callable[[Sequence[str], Path], Awaitable[Target]]
    """Takes the servers' URLs and a directory. Raises NotInstalled."""


async def _mcp_hub(urls: Sequence[str], directory: Path) -> Target:
    binaries = node_peer("mcp-hub", "mcp-hub@4.2.1")
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
    return replace(started, listing=Target("mcp-hub", process, run))


async def _mcpo(urls: Sequence[str], directory: Path) -> Target:
    binaries = python_peer("mcpo", "mcpo==0.0.20", "mcp<2", "fastapi==0.115.14")
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


async def _started(name: str, process: Process, url: str, body: bytes) -> Target:
    port = int(urlsplit(url).port or 0)
    return await _started_with(name, process, request(url, body), port)


async def _started_with(name: str, process: Process, data: bytes, port: int) -> Target:
    url = f"http://127.0.0.1:{port}"
    try:
        await answering(url, data, expected=b"xxx", process=process)
    except BaseException:
        process.stop()
        raise
    return Target(name, process, posting(url, data, expected=b"xxx"))


async def skeleton(urls: Sequence[str]) -> Target:
    """Return the least gateway of the daemon's own libraries (``benchmarks.peers.skeleton``)."""
    port = free_port()
    process = Process(
        [sys.executable, "-m", "benchmarks.peers.skeleton", str(port), urls[0]], core=GATEWAY_CORE
    )
    body = json.dumps({"tool": "tool-0", "arguments": ARGUMENTS}).encode()
    return await _started(SKELETON, process, f"http://127.0.0.1:{port}/", body)


QUICK = (Gateway("mcp-hub", _mcp_hub), Gateway("mcpo", _mcpo), Gateway("FastMCP proxy", _fastmcp))
