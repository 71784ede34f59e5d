"""Serves a sample server over Streamable HTTP on a loopback port. MCP basic/transports/streamable-http."""

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.cli.samples.server import META, CancelledError, JsonObject, RequestError, SampleServer

PATH = "/mcp"
MAX_BODY = 1024 * 1024
SENTINEL = ("=?base64?", "?=")
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def decoded(value: str) -> str:
    """Return a header's value after undoing the base64 sentinel, where it has one."""
    prefix, suffix = SENTINEL
    if value.startswith(prefix) and value.endswith(suffix):
        return base64.b64decode(value[len(prefix) : -len(suffix)]).decode()
    return value


def require_matching_headers(headers: Any, request: JsonObject) -> None:
    """Return where the request's headers say what its body says.

    Raises:
        RequestError: one is missing or says something else (``HeaderMismatch``).
    """
    params = request.get("params") or {}
    expected = {
        "MCP-Protocol-Version": (params.get("_meta") or {}).get(f"{META}protocolVersion"),
        "Mcp-Method": request.get("method"),
    }
    if (member := NAMED.get(str(request.get("method")))) is not None:
        expected["Mcp-Name"] = params.get(member)
    for name, value in expected.items():
        given = headers.get(name)
        if given is None or (value is not None and decoded(given) != value):
            raise RequestError(-32020, f"Header mismatch: {name} does not match the body", http_status=400)


def _say_nothing(_progress: float, _total: float, _message: str) -> None:
    """Report to nobody: the caller asked for no progress."""


class Endpoint(BaseHTTPRequestHandler):
    """One POST: a JSON answer, or an event stream where the caller asked for progress of a tool."""

    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; the second must not wait for the acknowledgement of the first.
    disable_nagle_algorithm = True
    server: "SampleHttpServer"  # pyright: ignore[reportIncompatibleVariableOverride] the base names it loosely

    def do_POST(self) -> None:
        """Answer one message."""
        request: JsonObject = {}
        try:
            self._require_acceptable()
            request = self._read()
            if "id" not in request:
                self._send_empty(202)
                return
            require_matching_headers(self.headers, request)
            self._answer(request)
        except RequestError as error:
            self._send_error_document(request, error)
        except (CancelledError, ConnectionError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Refuse: this revision has no GET stream."""
        self._send_empty(405)

    def do_DELETE(self) -> None:
        """Refuse: this revision has no sessions."""
        self._send_empty(405)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # pyright: ignore[reportImplicitOverride] the base names it so; no override decorator in this Python's library
        """Say nothing: the demo's terminal is not a log."""

    def _require_acceptable(self) -> None:
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://127.0.0.1:{self.server.server_port}":
            raise RequestError(-32600, "Origin refused", http_status=403)
        if self.path != PATH:
            raise RequestError(-32600, "The endpoint is /mcp", http_status=404)

    def _read(self) -> JsonObject:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= MAX_BODY:
            self.close_connection = True
            raise RequestError(-32600, "The body is missing or too large", http_status=400)
        try:
            request = json.loads(self.rfile.read(length))
        except ValueError as error:
            raise RequestError(-32700, "Parse error", http_status=400) from error
        if not isinstance(request, dict):
            raise RequestError(-32600, "One JSON-RPC message, please", http_status=400)
        return request

    def _answer(self, request: JsonObject) -> None:
        params = request.get("params") or {}
        token = (params.get("_meta") or {}).get("progressToken")
        if request.get("method") == "tools/call" and token is not None:
            self._stream(request, params, token)
            return
        result = self.server.sample.answer(request.get("method", ""), params, _say_nothing)
        self._send_json(200, {"jsonrpc": "2.0", "id": request["id"], "result": result})

    def _stream(self, request: JsonObject, params: JsonObject, token: str | int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Accel-Buffering", "no")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

        def report(progress: float, total: float, message: str) -> None:
            facts = {"progressToken": token, "progress": progress, "total": total, "message": message}
            self._event({"jsonrpc": "2.0", "method": "notifications/progress", "params": facts})

        answer: JsonObject = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = self.server.sample.answer("tools/call", params, report)
        except RequestError as error:
            answer["error"] = error.document()
        self._event(answer)

    def _event(self, message: JsonObject) -> None:
        """Write one event; a client that closed the stream has cancelled."""
        self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")

    def _send_error_document(self, request: JsonObject, error: RequestError) -> None:
        document: JsonObject = {"jsonrpc": "2.0", "error": error.document()}
        if "id" in request:
            document["id"] = request["id"]
        self._send_json(error.http_status, document)

    def _send_json(self, status: int, document: JsonObject) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


class SampleHttpServer(ThreadingHTTPServer):
    """A sample server on a free loopback port, one thread a connection."""

    daemon_threads = True

    def __init__(self, sample: SampleServer) -> None:
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.sample = sample

    @property
    def url(self) -> str:
        """The URL of the MCP endpoint."""
        return f"http://127.0.0.1:{self.server_port}{PATH}"


def serve_http(server: SampleServer) -> None:
    """Serve until the process ends; the first line of standard output is the endpoint's URL."""
    with SampleHttpServer(server) as serving:
        print(serving.url, flush=True)  # noqa: T201 the parent reads it
        serving.serve_forever()
