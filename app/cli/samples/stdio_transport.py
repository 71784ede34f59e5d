"""Serves a sample server over standard input and output, one thread a request. MCP basic/transports/stdio."""

import json
import sys
import threading
from dataclasses import dataclass, field
from typing import TextIO

from app.cli.samples.server import CancelledError, JsonObject, Report, RequestError, SampleServer


@dataclass(slots=True)
class StdioServing:
    """The requests in flight on one pair of streams, and the lock that keeps lines whole."""

    server: SampleServer
    reader: TextIO
    writer: TextIO
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: dict[str | int, threading.Event] = field(default_factory=dict[str | int, threading.Event])

    def run(self) -> None:
        """Return once standard input is closed and every request has ended."""
        workers: list[threading.Thread] = []
        for line in self.reader:
            message = _parse(line)
            if message is None:
                continue
            if "id" not in message:
                self._take_notification(message)
                continue
            self._cancelled[message["id"]] = threading.Event()
            worker = threading.Thread(target=self._respond, args=(message,))
            worker.start()
            workers = [known for known in workers if known.is_alive()] + [worker]
        for cancelled in list(self._cancelled.values()):
            cancelled.set()
        for worker in workers:
            worker.join()

    def _take_notification(self, message: JsonObject) -> None:
        if message.get("method") == "notifications/cancelled":
            identity: str | int = (message.get("params") or {}).get("requestId", "")
            if (cancelled := self._cancelled.get(identity)) is not None:
                cancelled.set()

    def _respond(self, message: JsonObject) -> None:
        identity = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params") or {}
        cancelled = self._cancelled[message["id"]]
        try:
            result = self.server.answer(message.get("method", ""), params, self._report(params, cancelled))
            self._write({**identity, "result": result})
        except RequestError as error:
            self._write({**identity, "error": error.document()})
        except CancelledError:
            pass
        finally:
            del self._cancelled[message["id"]]

    def _report(self, params: JsonObject, cancelled: threading.Event) -> Report:
        token = (params.get("_meta") or {}).get("progressToken")

        def report(progress: float, total: float, message: str) -> None:
            if cancelled.is_set():
                raise CancelledError
            if token is not None:
                facts = {"progressToken": token, "progress": progress, "total": total, "message": message}
                self._write({"jsonrpc": "2.0", "method": "notifications/progress", "params": facts})

        return report

    def _write(self, message: JsonObject) -> None:
        with self._lock:
            self.writer.write(json.dumps(message, ensure_ascii=False) + "\n")
            self.writer.flush()


def _parse(line: str) -> JsonObject | None:
    """Return the message of a line, or None where it is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def serve_stdio(server: SampleServer) -> None:
    """Return once standard input is closed."""
    StdioServing(server, sys.stdin, sys.stdout).run()
