"""A small MCP peer of the standard library alone, good or bad in one named way. SPEC §prepare.

It starts in a fraction of a real server's time, so journeys that need a hundred servers, or a fault, use it.
Run it by its path: ``python scripted.py stdio good`` or ``python scripted.py http endless``. The ways:

- ``good``
- ``silent``: never answers
- ``legacy``: knows no ``server/discover``
- ``old``: discovers another revision
- ``duplicate``: lists one tool twice
- ``endless``: the list of tools never ends
- ``dies``: ends while it lists
- ``wedged``: lists, then never answers a call
- ``kills``: lists, waits ``KILL_AFTER_US`` microseconds and kills the process ``VICTIM`` with SIGKILL
- ``@FILE``: whichever way the file names at each request
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

REVISION = "2026-07-28"
Message = dict[str, Any]

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
GATE = {"type": "object", "properties": {"gate": {"type": "string"}}, "required": ["gate"]}
NOTHING = {"type": "object", "additionalProperties": False}
TOOLS = [
    {"name": "echo", "description": "Return the text.", "inputSchema": TEXT},
    {"name": "variable", "description": "Return a variable of the environment.", "inputSchema": NAME},
    {"name": "header", "description": "Return a header of the request.", "inputSchema": NAME},
    {"name": "hold", "description": "Touch GATE.entered, answer once GATE.open exists.", "inputSchema": GATE},
    {"name": "process", "description": "Return the process id.", "inputSchema": NOTHING},
    {"name": "die", "description": "End the process.", "inputSchema": NOTHING},
]
_pages = itertools.count(1)


def cacheable(**members: Any) -> Message:
    """Return a complete result that may not be kept."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **members}


def held(gate: str) -> str:
    """Return once the gate is open; tells through a file that it was entered."""
    Path(f"{gate}.entered").touch()
    while not Path(f"{gate}.open").exists():
        time.sleep(0.01)
    return "released"


def call(params: Message, headers: dict[str, str]) -> Message:
    """Return the result of one tool call."""
    arguments = params.get("arguments") or {}
    match params.get("name"):
        case "echo":
            text = arguments["text"]
        case "variable":
            text = os.environ.get(arguments["name"], "(unset)")
        case "header":
            text = headers.get(arguments["name"].lower(), "(unset)")
        case "hold":
            text = held(arguments["gate"])
        case "process":
            text = str(os.getpid())
        case _:
            os._exit(3)
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


def listing(way: str) -> Message:
    """Return one page of tools."""
    match way:
        case "duplicate":
            return cacheable(tools=[TOOLS[0], *TOOLS])
        case "endless":
            number = next(_pages)
            return cacheable(tools=[{**TOOLS[0], "name": f"echo-{number}"}], nextCursor=f"page-{number}")
        case "dies":
            os._exit(4)
        case _:
            return cacheable(tools=TOOLS)


def discovered(way: str) -> Message:
    """Return the answer to ``server/discover``."""
    versions = ["2025-11-25"] if way == "old" else [REVISION]
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1.0"}}
    return cacheable(supportedVersions=versions, capabilities={"tools": {}}, _meta=meta)


def kill_victim() -> None:
    """Kill the daemon that the environment names, after the delay that it names."""
    time.sleep(int(os.environ["KILL_AFTER_US"]) / 1e6)
    victim = int(os.environ["VICTIM"])
    with suppress(OSError):
        if b"serve" in Path(f"/proc/{victim}/cmdline").read_bytes():
            os.kill(victim, signal.SIGKILL)


def answer(way: str, request: Message, headers: dict[str, str]) -> Message | None:
    """Return the JSON-RPC response to a request, or None where this peer stays silent."""
    if way.startswith("@"):
        way = Path(way[1:]).read_text()
    identity = {"jsonrpc": "2.0", "id": request["id"]}
    method, params = request.get("method"), request.get("params") or {}
    if way == "silent" or (way == "wedged" and method == "tools/call"):
        return None
    if way == "legacy":
        return {**identity, "error": {"code": -32601, "message": "Method not found"}}
    match method:
        case "server/discover":
            return {**identity, "result": discovered(way)}
        case "tools/list":
            return {**identity, "result": listing(way)}
        case "tools/call":
            return {**identity, "result": call(params, headers)}
        case _:
            return {**identity, "error": {"code": -32601, "message": "Method not found"}}


def serve_stdio(way: str) -> None:
    """Answer each line of standard input in a thread of its own, until it closes."""
    lock = threading.Lock()

    def respond(request: Message) -> None:
        if (response := answer(way, request, {})) is None:
            return
        with lock:
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()
        if way == "kills" and request["method"] == "tools/list":
            kill_victim()

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=respond, args=(message,), daemon=True).start()


def serve_http(way: str) -> None:
    """Serve the endpoint on a free loopback port, whose URL is the first line of standard output."""

    class Endpoint(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = answer(way, request, {name.lower(): value for name, value in self.headers.items()})
            if response is None:
                threading.Event().wait()
            body = json.dumps(response).encode()
            self.send_response(404 if response and response.get("error", {}).get("code") == -32601 else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the journeys read what the daemon says."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    httpd.daemon_threads = True
    print(json.dumps({"url": f"http://127.0.0.1:{httpd.server_port}/mcp"}), flush=True)
    httpd.serve_forever()


if __name__ == "__main__":
    (serve_http if sys.argv[1] == "http" else serve_stdio)(sys.argv[2])
