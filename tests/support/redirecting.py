"""The front of an authorization server: a real page that sends the browser straight back. RFC 6749 §4.1.2."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from urllib.parse import parse_qs, urlencode, urlsplit

from typing_extensions import override


class _Redirecting(BaseHTTPRequestHandler):
    """Grants everything at once."""

    def do_GET(self) -> None:
        """Send the browser back with a code."""
        asked = parse_qs(urlsplit(self.path).query)
        answer = urlencode({"code": "code-canary-1", "state": asked["state"][0], "iss": "http://as.example"})
        self.send_response(302)
        self.send_header("Location", f"{asked['redirect_uri'][0]}?{answer}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""


@contextmanager
def redirecting_server() -> Generator[str]:
    """Serve the page on a free loopback port and give its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/authorize"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def authorization_url(page: str, redirect_url: str, state: str = "state-1") -> str:
    """Return the URL with which a sign-in begins."""
    return f"{page}?{urlencode({'response_type': 'code', 'state': state, 'redirect_uri': redirect_url})}"


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago."""
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
