"""``serve``: one process, one home, one port, from the lock to the last closed connection. SPEC §state, §shutdown."""

import asyncio
import gc
import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

import anyio
import structlog
import uvicorn
from anyio.abc import TaskStatus
from typing_extensions import override

from app import logs
from app.configuration import Configuration
from app.core.masking import Mask
from app.doors.accepting import accept
from app.doors.gathered_transport import Clients
from app.doors.http_protocol import HttpProtocol
from app.home import Home, HomeRefused
from app.log_lines import LogLines
from app.main import Daemon, running_daemon
from app.observe.export_settings import TracesRefused
from app.settings import Settings
from app.store.refusal import StoreRefused
from app.tokens import TokenRefused

log = structlog.get_logger("plurnk.serving")

CLEAN_UP_MARGIN_MS = 1000
"""How much of the shutdown's time is left for the store and the process after the connections."""
YOUNG_MAX = 20_000
"""Objects that are made before the garbage collector looks at them; more would make each look a stall."""
ABRUPT = 128
"""Added to a signal's number, the exit status of a process that it ended at once."""


class StartRefused(Exception):
    """The daemon does not start; the text is one sentence that says what to do."""


class Server(uvicorn.Server):
    """uvicorn, ended by us: the runs end first, so that no client is cut."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_signal: Callable[[], object],
        before_abrupt_end: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._on_signal = on_signal
        self._before_abrupt_end = before_abrupt_end
        self._signals = 0
        self._clients = Clients(self.server_state, asyncio.get_running_loop())

    def new_client(self) -> HttpProtocol:
        """Return the protocol of one more client; ``serve`` has begun."""
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            clients=self._clients,
        )

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown at the first signal; at the second one end the process at once.

        The reaper kills every child's group when our end of its pipe closes with us.
        """
        self._signals += 1
        if self._signals > 1:
            try:
                self._before_abrupt_end()
            finally:
                os._exit(ABRUPT + sig)
        self._on_signal()


async def serve(configuration: Configuration) -> None:
    """Serve until a signal ends it.

    Raises:
        StartRefused: nothing was opened.
    """
    mask = Mask()
    lines = logs.configure(configuration.settings, mask.mask)
    try:
        with Home.open(configuration.settings.home, configuration.environment.values) as home:
            listening = bound(configuration.settings)
            with listening:
                async with running_daemon(configuration, home, mask) as daemon:
                    _spare_the_collector()
                    await _serve_on(listening, daemon, home, lines)
    except (HomeRefused, StoreRefused, TokenRefused, TracesRefused) as refused:
        raise StartRefused(str(refused)) from refused
    finally:
        lines.flush()


async def _serve_on(listening: socket.socket, daemon: Daemon, home: Home, lines: LogLines) -> None:
    settings, asked = daemon.host.settings, anyio.Event()
    loop = asyncio.get_running_loop()
    server = Server(
        uvicorn_config(daemon),
        on_signal=lambda: loop.call_soon_threadsafe(asked.set),
        before_abrupt_end=lines.flush,
    )
    address = _address(listening, settings)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [])
        accepting = await group.start(_accepting, listening, server)
        home.announce(address)
        _greet(address, daemon)
        await asked.wait()
        log.info("shutting-down", timeout_ms=settings.shutdown_timeout_ms)
        with anyio.move_on_after(max(0, settings.shutdown_timeout_ms - CLEAN_UP_MARGIN_MS) / 1000) as limit:
            await daemon.end()
        if limit.cancelled_caught:
            log.warning("shutdown-timeout", reason="connections were left to the reaper")
        accepting.cancel()
        server.should_exit = True


async def _accepting(
    listening: socket.socket, server: Server, *, task_status: TaskStatus[anyio.CancelScope]
) -> None:
    """Take clients in until the scope that is given at the start is cancelled."""
    with anyio.CancelScope() as scope:
        task_status.started(scope)
        await accept(listening, server.new_client)


def _spare_the_collector() -> None:
    """Have the garbage collector pass over what lives as long as the process, and look less often at what is young.

    Hundreds of thousands of objects of imported modules: each full collection would walk them on the event loop, and
    everybody would wait for a tenth of a second. A call makes many objects that live until its answer, which a
    collection at every 700th of them, Python's default, walks in vain.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX)


def uvicorn_config(daemon: Daemon) -> uvicorn.Config:
    """Return how uvicorn is run: with our protocol, and nothing of its own around the application."""
    return uvicorn.Config(
        daemon.app,
        http=HttpProtocol,
        log_config=None,
        log_level="error",  # What a stranger sends wrongly makes no line: it could fill the disk.
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def bound(settings: Settings) -> socket.socket:
    """Return the listening socket, before anything else is opened."""
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with ExitStack() as unless_bound:
            listening = unless_bound.enter_context(socket.socket(family, kind))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
            listening.setblocking(False)  # noqa: FBT003 the standard library's signature
            unless_bound.pop_all()
    except OSError as error:
        raise StartRefused(
            f"The address {settings.host} port {settings.port} cannot be opened: {error.strerror or error}."
            " Set PLURNK_HOST and PLURNK_PORT to a free one (0 takes any port)."
        ) from error
    return listening


def _address(listening: socket.socket, settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}"


def _greet(address: str, daemon: Daemon) -> None:
    """Say where the daemon is and how to get at its token; never the token."""
    sys.stdout.write(f"plurnk-mcpd listens on {address}\n")
    if daemon.tokens.is_open:
        sys.stdout.write("PLURNK_TOKEN=none: whoever reaches this address is the operator.\n")
    else:
        sys.stdout.write('export PLURNK_TOKEN="$(plurnk-mcpd token)"\n')
    sys.stdout.flush()
