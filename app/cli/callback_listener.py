"""Waits on loopback for the browser to come back from a sign-in. SPEC §cli, §oauth; RFC 8252 §7.3.

It takes one callback, whose ``state`` is that of the sign-in, and hands its URL over as it came; the daemon judges it.
Nothing of a request is logged: it holds an authorization code.
"""

import errno
import html
import socket
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from typing_extensions import override

_LOOPBACK: Final = {"127.0.0.1": ("127.0.0.1",), "::1": ("::1",), "localhost": ("127.0.0.1", "::1")}
_ABSENT: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_REQUEST_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
TAKEN: Final = "The sign-in goes on in the terminal. This page can be closed."
FOREIGN: Final = "This is no answer to the sign-in that waits here."


@dataclass
class CallbackListener:
    """What came back, and a file descriptor that becomes readable when it did."""

    redirect: SplitResult
    state: str
    _readable: socket.socket
    _writable: socket.socket
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _callback: str | None = None

    def fileno(self) -> int:
        """Return what ``select`` can wait for."""
        return self._readable.fileno()

    @property
    def callback(self) -> str | None:
        """The whole URL that the browser was sent to; None before it was."""
        return self._callback

    def offer(self, target: str) -> int:
        """Return the HTTP status for a request target; the first callback of the sign-in is kept."""
        parts = urlsplit(target)
        if not target.startswith("/") or parts.path != (self.redirect.path or "/"):
            return 404
        if parse_qs(parts.query).get("state") != [self.state]:
            return 400
        with self._lock:
            if self._callback is None:
                self._callback = f"{self.redirect.scheme}://{self.redirect.netloc}{target}"
        return 200

    def wake(self) -> None:
        """Become readable; once the browser has its page, for whoever waits may end the process."""
        self._writable.send(b".")


class _Server(ThreadingTCPServer):
    """One loopback address."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, port: int, listener: CallbackListener) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = listener
        super().__init__((address, port), _Handler)

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is nobody's business."""


class _Handler(BaseHTTPRequestHandler):
    """One request of a browser."""

    timeout = _REQUEST_SECONDS
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] it is made by none but _Server

    def do_GET(self) -> None:
        """Answer a page that says what to do."""
        status = self.server.listener.offer(self.path)
        body = (
            f"<!doctype html><title>plurnk-mcpd</title><p>{html.escape(TAKEN if status == 200 else FOREIGN)}"
        )
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body.encode())
        if status == 200:
            self.server.listener.wake()

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the request line holds an authorization code."""


@contextmanager
def listening_for(authorization_url: str) -> Generator[CallbackListener | None]:
    """Listen where a sign-in sends the browser back to; None where that is not here, or not free."""
    where = _where(authorization_url)
    if where is None:
        yield None
        return
    redirect, state, port = where
    readable, writable = socket.socketpair()
    with ExitStack() as stack:
        stack.enter_context(readable)
        stack.enter_context(writable)
        listener = CallbackListener(redirect, state, readable, writable)
        yield listener if _opened(stack, listener, port) else None


def _where(authorization_url: str) -> tuple[SplitResult, str, int] | None:
    """Return the redirect URL, the state and the port that a sign-in names, where the URL is one on loopback."""
    try:
        asked = parse_qs(urlsplit(authorization_url).query)
        redirect = urlsplit(asked["redirect_uri"][0])
        port = redirect.port or 80
        state = asked["state"][0]
    except (ValueError, KeyError):
        return None
    is_here = redirect.scheme == "http" and redirect.hostname in _LOOPBACK
    return (redirect, state, port) if is_here else None


def _opened(stack: ExitStack, listener: CallbackListener, port: int) -> bool:
    """Return whether every address of the redirect URL's host is ours until the stack is left."""
    servers: list[_Server] = []
    for address in _LOOPBACK[listener.redirect.hostname or ""]:
        try:
            servers.append(stack.enter_context(_Server(address, port, listener)))
        except OSError as error:
            if error.errno not in _ABSENT:
                return False
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True).start()
        stack.callback(server.shutdown)
    return bool(servers)
