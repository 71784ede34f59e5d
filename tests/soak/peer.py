"""A small MCP peer that does all a soak needs, and writes down every call that it carried out. SPEC §calls, §watch.

Run it by its path: ``python peer.py stdio LOG`` or ``python peer.py http PORT LOG``; it imports the standard library
alone. Its tools:

- ``echo``, ``write``: return the text
- ``slow``: returns the text after a while
- ``ask``: asks one question first
- ``work``: makes a task of it
- ``grow``: changes the list of tools and says so on every listen stream
- ``die``: ends the process
"""

import itertools
import json
import os
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

Message = dict[str, Any]
Tell = Callable[[Message], None]
"""Writes one message to the client."""

REVISION = "2026-07-28"
ID = "io.modelcontextprotocol/subscriptionId"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
TOOLS = ("echo", "write", "slow", "ask", "work", "grow", "die")
TASK_S = 0.3
SLOW_S = 0.2
MOMENT = "2026-07-28T10:30:00Z"


class Peer:
    """What all clients of one process share."""

    def __init__(self, log: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._changes = threading.Condition()
        self._version = 0
        self._tasks: dict[str, tuple[str, float]] = {}
        self._numbers = itertools.count(1)

    def answer(self, request: Message) -> Message:
        """Return the JSON-RPC response."""
        identity = {"jsonrpc": "2.0", "id": request["id"]}
        params = request.get("params") or {}
        match request["method"]:
            case "server/discover":
                result = self._discovered()
            case "tools/list":
                tools = [{"name": name, "inputSchema": TEXT} for name in (*TOOLS, f"more-{self._version}")]
                result = _complete(tools=tools)
            case "tools/call":
                result = self._called(params)
            case "tasks/get":
                result = self._followed(params["taskId"])
            case "tasks/cancel":
                self._tasks.pop(params["taskId"], None)
                result = {"resultType": "complete"}
            case _:
                return {**identity, "error": {"code": -32601, "message": "Method not found"}}
        if result is None:
            return {**identity, "error": {"code": -32602, "message": "Task not found"}}
        return {**identity, "result": result}

    def _discovered(self) -> Message:
        capabilities = {"tools": {"listChanged": True}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        return _complete(supportedVersions=[REVISION], capabilities=capabilities)

    def _called(self, params: Message) -> Message:
        name, text = params["name"], params["arguments"]["text"]
        match name:
            case "ask" if not params.get("inputResponses"):
                asked = {"mode": "form", "message": "Sure?", "requestedSchema": SURE}
                requests = {"sure": {"method": "elicitation/create", "params": asked}}
                return {"resultType": "input_required", "inputRequests": requests, "requestState": text}
            case "work":
                task = f"task-{os.getpid()}-{next(self._numbers)}"
                self._tasks[task] = (text, time.monotonic() + TASK_S)
                return {**_task(task, "working"), "resultType": "task"}
            case "slow":
                time.sleep(SLOW_S)
            case "grow":
                with self._changes:
                    self._version += 1
                    self._changes.notify_all()
            case "die":
                os._exit(3)
            case _:
                pass
        return self._carried_out(text)

    def _carried_out(self, text: str) -> Message:
        os.write(self._log, f"{text}\n".encode())
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    def _followed(self, task: str) -> Message | None:
        if task not in self._tasks:
            return None
        text, due = self._tasks[task]
        if time.monotonic() < due:
            return {**_task(task, "working"), "resultType": "complete"}
        del self._tasks[task]
        return {**_task(task, "completed"), "resultType": "complete", "result": self._carried_out(text)}

    def listen(self, request: Message, tell: Tell) -> None:
        """Acknowledge a listen stream and tell it of every change until that fails or the stream is over."""
        meta = {ID: request["id"]}
        flags = {"toolsListChanged": True}
        tell(_notification("subscriptions/acknowledged", _meta=meta, notifications=flags))
        seen = self._version
        while True:
            with self._changes:
                self._changes.wait(5.0)
                version = self._version
            if version != seen:
                seen = version
                tell(_notification("tools/list_changed", _meta=meta))
            else:
                # Fails where the client is gone.
                tell({})


def _complete(**members: Any) -> Message:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **members}


def _notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def _task(task: str, status: str) -> Message:
    times = {"createdAt": MOMENT, "lastUpdatedAt": MOMENT, "ttlMs": 60000, "pollIntervalMs": 100}
    return {"taskId": task, "status": status, **times}


def serve_stdio(peer: Peer) -> None:
    """Answer each line of standard input in a thread of its own, until it closes."""
    lock = threading.Lock()

    def tell(message: Message) -> None:
        with lock:
            if message:
                sys.stdout.write(json.dumps(message) + "\n")
                sys.stdout.flush()

    def respond(request: Message) -> None:
        with suppress(OSError):
            if request["method"] == "subscriptions/listen":
                peer.listen(request, tell)
            else:
                tell(peer.answer(request))

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=respond, args=(message,), daemon=True).start()


def serve_http(peer: Peer, port: int) -> None:
    """Serve the endpoint on this loopback port, whose number is the first line of standard output."""

    class Endpoint(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 256

    _Connection.peer = peer
    with Endpoint(("127.0.0.1", port), _Connection) as endpoint:
        print(endpoint.server_address[1], flush=True)
        endpoint.serve_forever()


class _Connection(socketserver.StreamRequestHandler):
    """One connection of a client."""

    disable_nagle_algorithm = True
    peer: ClassVar[Peer]

    # Without site-packages there is no ``override`` before Python 3.12.
    def handle(self) -> None:  # pyright: ignore[reportImplicitOverride] see above
        with suppress(OSError):
            while (request := self._request()) is not None:
                if request["method"] == "subscriptions/listen":
                    self._listen(request)
                    return
                body = json.dumps(self.peer.answer(request)).encode()
                head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _request(self) -> Message | None:
        length = 0
        while (line := self.rfile.readline()) not in {b"", b"\r\n"}:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.rfile.read(length)) if line else None

    def _listen(self, request: Message) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")

        def tell(message: Message) -> None:
            self.wfile.write(f"data: {json.dumps(message)}\n\n".encode() if message else b": alive\n\n")

        self.peer.listen(request, tell)


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http(Peer(sys.argv[3]), int(sys.argv[2]))
    else:
        serve_stdio(Peer(sys.argv[2]))
