"""Taking clients in, and going on where no descriptor is left for one. SPEC §limits.

The event loop's own server turns without rest where the limit of descriptors was lowered below what is open: its
socket stays readable, and nobody can be taken in nor turned away. What a client says is for ``http_protocol``.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import anyio
import structlog
from anyio.lowlevel import checkpoint

log = structlog.get_logger("plurnk.doors")

RETRY_S = 0.5
"""Between two tries where nobody can be taken in nor turned away; who comes waits in the system's queue."""
_SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


async def accept(listening: socket.socket, new_client: Callable[[], asyncio.Protocol]) -> None:
    """Give each client a protocol of its own, until cancelled; then the socket is closed.

    Who finds no descriptor is turned away rather than left to wait for an answer.
    """
    loop, reserve = asyncio.get_running_loop(), _Reserve()
    try:
        while True:
            try:
                client, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                await checkpoint()  # The client left before its turn.
            except OSError as error:
                if error.errno in _SCARCE and reserve.turn_away(listening):
                    await checkpoint()
                else:
                    await anyio.sleep(RETRY_S)
            else:
                reserve.fill()
                await _begin(client, new_client)
    finally:
        reserve.give_up()
        listening.close()


async def _begin(client: socket.socket, new_client: Callable[[], asyncio.Protocol]) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(new_client, client)
    except OSError:
        client.close()


class _Reserve:
    """One descriptor that is kept open, for the client that finds none."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self.fill()

    @property
    def _is_kept(self) -> bool:
        return self._descriptor is not None

    def fill(self) -> None:
        """Keep one, where there is one to be had."""
        if self._descriptor is None:
            with suppress(OSError):
                self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def give_up(self) -> None:
        """Keep none."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def turn_away(self, listening: socket.socket) -> bool:
        """Close the connection of the next client; return False where not even that can be done."""
        if not self._is_kept:
            return False
        self.give_up()
        try:
            listening.accept()[0].close()
        except OSError as error:
            log.warning("no-client-can-be-accepted", reason=os.strerror(error.errno or 0).lower())
        self.fill()
        return self._is_kept
