"""What calls and lists cost, through the daemon, through its peers and without anything between."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.blocks import Effort, Figure, measured
from benchmarks.environments import NotInstalled
from benchmarks.gateways import Gateway, skeleton
from benchmarks.targets import (
    CALL,
    LIST,
    STDIO_SERVER,
    Backend,
    Daemon,
    Target,
    client,
    floor,
    http_definition,
    posting,
    stdio_definition,
)

OURS = "plurnk-mcpd"
SDK = "mcp SDK client"
WIRE = "plurnk-mcpd's own wire"
FLOOR = "floor"
SERVERS = 20


async def http_calls(
    backend: Backend,
    directory: Path,
    gateways: Sequence[Gateway],
    *,
    in_flight: Sequence[int],
    effort: Effort,
) -> list[Figure]:
    """Return the figures of one small call over HTTP, of AG-UI, and of the list."""
    urls, figures = backend.servers(SERVERS), list[Figure]()
    definitions = [http_definition(f"s{number}", url) for number, url in enumerate(urls)]
    async with _daemon(directory / "http", definitions) as daemon:
        ours, agui, listing = _ways(daemon)
        direct = [floor(urls[0]), client(SDK, "sdk_client", urls[0]), client(WIRE, "own_client", urls[0])]
        with ExitStack() as stack:
            peers = [ours, *direct, await skeleton(urls), *await _started(gateways, urls, directory)]
            for peer in peers:
                if peer.process is not None:
                    stack.enter_context(peer.process)
            for number in in_flight:
                figures += await measured("call", peers, in_flight=number, effort=effort, backend=backend)
                figures += await measured(
                    "AG-UI call", [agui, ours], in_flight=number, effort=effort, backend=backend
                )
            lists = [listing, *(peer.listing for peer in peers if peer.listing is not None)]
            figures += await measured("list", lists, in_flight=1, effort=effort, backend=backend)
    return figures


async def stdio_calls(directory: Path, *, in_flight: Sequence[int], effort: Effort) -> list[Figure]:
    """Return the figures of one small call to a child process."""
    figures = list[Figure]()
    async with _daemon(directory / "stdio", [stdio_definition("s0")]) as daemon:
        ours, *_ = _ways(daemon)
        others = [
            client(name, program, "stdio", *STDIO_SERVER)
            for name, program in ((SDK, "sdk_client"), (WIRE, "own_client"))
        ]
        with ExitStack() as stack:
            for other in others:
                assert other.process is not None
                stack.enter_context(other.process)
            for number in in_flight:
                figures += await measured("stdio call", [ours, *others], in_flight=number, effort=effort)
    return figures


@asynccontextmanager
async def _daemon(directory: Path, definitions: Sequence[dict[str, object]]) -> AsyncGenerator[Daemon]:
    daemon = Daemon(directory)
    with daemon.process:
        await daemon.ready()
        await daemon.attach(definitions)
        yield daemon


def _ways(daemon: Daemon) -> tuple[Target, Target, Target]:
    """Return a call over REST, a call over AG-UI and the list over REST."""
    return (
        Target(OURS, daemon.process, posting(daemon.url, daemon.action(CALL), expected=b"xxx")),
        Target(
            f"{OURS}, AG-UI",
            daemon.process,
            posting(daemon.url, daemon.agui_run(CALL), expected=b"RUN_FINISHED"),
        ),
        Target(OURS, daemon.process, posting(daemon.url, daemon.action(LIST), expected=b'"s19"')),
    )


async def _started(gateways: Sequence[Gateway], urls: Sequence[str], directory: Path) -> list[Target]:
    """Return the peers that could be installed and started; what is left out is said."""
    started: list[Target] = []
    for gateway in gateways:
        try:
            started.append(await gateway.start(urls, directory))
        except (NotInstalled, OSError, TimeoutError) as failure:
            sys.stderr.write(f"left out: {gateway.name}: {failure or type(failure).__name__}\n")
    return started
