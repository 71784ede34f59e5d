"""What calls and lists cost, through the daemon, through its peers and without anything between."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.blocks import Effort, Figure, measured
from benchmarks.environments import NotInstalled
from benchmarks.gateways import Gateway, skeleton
from benchmarks.targets import (
    ARGUMENTS,
    CALL,
    LIST,
    RECONNECT,
    STDIO_SERVER,
    Backend,
    Daemon,
    Target,
    client,
    floor,
    http_definition,
    mcp_call,
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
    sizes: Sequence[int] = (),
) -> list[Figure]:
    """Return the figures of one small call over HTTP, of AG-UI, of the list and of reconnecting.

    With sizes, those of results of so many bytes, as JSON and as an event stream, too.
    """
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
            again = Target(
                OURS, daemon.process, posting(daemon.url, daemon.action(RECONNECT), expected=b"s1")
            )
            figures += await measured("reconnect", [again], in_flight=1, effort=effort, backend=backend)
            for size in sizes:
                figures += await _sized(backend, daemon, size, effort)
    return figures


async def _sized(backend: Backend, daemon: Daemon, size: int, effort: Effort) -> list[Figure]:
    """Return the figures of a call whose result has so many bytes, of the daemon and of the floor."""
    figures, arguments = list[Figure](), {**ARGUMENTS, "size": size}
    for name, way in (("JSON", "s"), ("SSE", "sse")):
        [url] = backend.servers(1, way=way)
        await daemon.attach([http_definition(f"sized-{way}", url)], f"sized-{size}")
        action = daemon.action({**CALL, "server": f"sized-{way}", "arguments": arguments}, f"sized-{size}")
        targets = [
            Target(OURS, daemon.process, posting(daemon.url, action, expected=b"xxx")),
            Target(FLOOR, None, posting(url, mcp_call(url, arguments=arguments), expected=b"xxx")),
        ]
        figures += await measured(
            f"call, {size} B, {name}", targets, in_flight=8, effort=effort, backend=backend
        )
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
