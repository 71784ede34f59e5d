"""What calls and lists cost, through the daemon, through its peers and without anything between."""

import ssl
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.blocks import Effort, Figure, measured
from benchmarks.environments import NotInstalled
from benchmarks.gateways import Gateway, relay, skeleton
from benchmarks.load import AnsweredWrong
from benchmarks.plan import Plan
from benchmarks.targets import (
    ARGUMENTS,
    CALL,
    LIST,
    RECONNECT,
    STDIO_SERVER,
    Backend,
    Daemon,
    Json,
    Target,
    client,
    floor,
    http_definition,
    http_definitions,
    mcp_call,
    posting,
    stdio_definition,
)

OURS = "plurnk-mcpd"
SDK = "mcp SDK client"
WIRE = "plurnk-mcpd's own wire"
INSIDE = f"{OURS}, inside the process"
FLOOR, ACROSS = "floor", "floor across the cores"
SERVERS = 20


async def http_calls(backend: Backend, directory: Path, plan: Plan) -> list[Figure]:
    """Return the figures of one small call over HTTP, of AG-UI, of the list and of reconnecting.

    Where the plan says so those over TLS, and those of results of so many bytes, as JSON and as an event stream, too.
    """
    urls, figures, effort = backend.servers(SERVERS), list[Figure](), plan.effort
    async with _daemon(directory / "http", http_definitions(urls), backend) as daemon:
        with ExitStack() as stack:
            others = await _direct(urls, directory, stack)
            others += await _started(plan.gateways, urls, directory, stack)
            agui = [_agui(daemon), _rest(daemon)]
            for number in plan.in_flight:
                some = [other for other in others if number <= other.most_in_flight]
                figures += await measured(
                    "call", [_rest(daemon), *some], in_flight=number, effort=effort, backend=backend
                )
                figures += await measured(
                    "AG-UI call", agui, in_flight=number, effort=effort, backend=backend
                )
            lists = [_listing(daemon), *(other.listing for other in others if other.listing is not None)]
            figures += await measured("list", lists, in_flight=1, effort=effort, backend=backend)
        run = posting(daemon.url, daemon.action(RECONNECT), expected=b"s1")
        again = Target(OURS, daemon.process, run)
        figures += await measured("reconnect", [again], in_flight=1, effort=effort, backend=backend)
        figures += await _over_tls(backend, daemon, directory, plan)
        for size in plan.sizes:
            figures += await _sized(backend, daemon, size, effort)
    return figures


async def _direct(urls: Sequence[str], directory: Path, stack: ExitStack) -> list[Target]:
    """Return what reaches the backend without a gateway, and the least gateways there can be."""
    started = [floor(urls[0])]
    for name, program in ((ACROSS, "floor_client"), (SDK, "sdk_client"), (WIRE, "own_client")):
        started.append(_kept(client(name, program, urls[0], directory=directory), stack))
    started.append(_kept(client(INSIDE, "inside_daemon", urls[0], directory=directory), stack))
    started.append(_kept(await relay(urls), stack))
    started.append(_kept(await skeleton(urls), stack))
    return started


async def _over_tls(backend: Backend, daemon: Daemon, directory: Path, plan: Plan) -> list[Figure]:
    """Return the figures of a small call to a server that is reached over TLS."""
    if not plan.in_flight_over_tls:
        return []
    url, trusted = f"{backend.tls_url}/s/0", str(backend.certificate)
    await daemon.attach([http_definition("s0", url)], "tls")
    figures, trust = list[Figure](), ssl.create_default_context(cafile=trusted)
    environment = {"SSL_CERT_FILE": trusted}
    with ExitStack() as stack:
        sdk = client(SDK, "sdk_client", url, directory=directory, environment=environment)
        _kept(sdk, stack)
        ours = posting(daemon.url, daemon.action(CALL, "tls"), expected=b"xxx")
        targets = [Target(OURS, daemon.process, ours), floor(url, trust), sdk]
        for number in plan.in_flight_over_tls:
            figures += await measured(
                "call, TLS", targets, in_flight=number, effort=plan.effort, backend=backend
            )
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


async def stdio_calls(directory: Path, plan: Plan) -> list[Figure]:
    """Return the figures of one small call to a child process."""
    figures = list[Figure]()
    async with _daemon(directory / "stdio", [stdio_definition("s0")]) as daemon:
        with ExitStack() as stack:
            others = [
                _kept(client(name, program, "stdio", *STDIO_SERVER, directory=directory), stack)
                for name, program in ((SDK, "sdk_client"), (WIRE, "own_client"))
            ]
            others += await _started(plan.stdio_gateways, [], directory, stack)
            for number in (1, 32):
                targets = [_rest(daemon), *others]
                figures += await measured("stdio call", targets, in_flight=number, effort=plan.effort)
    return figures


@asynccontextmanager
async def _daemon(
    directory: Path, definitions: Sequence[Json], backend: Backend | None = None
) -> AsyncGenerator[Daemon]:
    """Run a daemon with these servers, which trusts the backend and lets one workspace have every call at once."""
    environment = {"PLURNK_MAX_WORKSPACE_OPERATIONS": "256"}
    if backend is not None:
        environment["PLURNK_CA_FILE"] = str(backend.certificate)
    daemon = Daemon(directory, environment)
    with daemon.process:
        await daemon.ready()
        await daemon.attach(definitions)
        yield daemon


def _rest(daemon: Daemon) -> Target:
    return Target(OURS, daemon.process, posting(daemon.url, daemon.action(CALL), expected=b"xxx"))


def _agui(daemon: Daemon) -> Target:
    run = posting(daemon.url, daemon.agui_run(CALL), expected=b"RUN_FINISHED")
    return Target(f"{OURS}, AG-UI", daemon.process, run)


def _listing(daemon: Daemon) -> Target:
    return Target(OURS, daemon.process, posting(daemon.url, daemon.action(LIST), expected=b'"s19"'))


def _kept(target: Target, stack: ExitStack) -> Target:
    """Return the target, whose process ends with the stack."""
    if target.process is not None:
        stack.enter_context(target.process)
    return target


async def _started(
    gateways: Sequence[Gateway], urls: Sequence[str], directory: Path, stack: ExitStack
) -> list[Target]:
    """Return the peers that could be installed and started; what is left out is said."""
    started = list[Target]()
    for gateway in gateways:
        try:
            started.append(_kept(await gateway.start(urls, directory), stack))
        except (AnsweredWrong, NotInstalled, OSError, TimeoutError) as failure:
            sys.stderr.write(f"left out: {gateway.name}: {failure or type(failure).__name__}\n")
    return started
