"""A collector of real parts: an HTTP server that takes OTLP and decodes it by OpenTelemetry's own protobuf messages."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from typing_extensions import override


@dataclass(frozen=True)
class CollectedSpan:
    """One span as it came."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    state: str
    is_error: bool
    attributes: Mapping[str, str]
    service: str

    @property
    def context(self) -> str:
        """What the ``traceparent`` of a child of it is, but for the flags."""
        return f"00-{self.trace}-{self.id}-"


class Collector:
    """What came until now."""

    def __init__(self, url: str) -> None:
        self.url = url
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.is_silent = threading.Event()
        """While it is set nothing is answered."""
        self.is_over = threading.Event()

    def spans(self) -> list[CollectedSpan]:
        """Return every span, in the order of their ends."""
        return [span for body in self.bodies for span in _decoded(body)]

    async def until(self, name: str) -> list[CollectedSpan]:
        """Return every span once one of this name has come."""
        with anyio.fail_after(20):
            while not any(span.name == name for span in self.spans()):
                await anyio.sleep(0.02)
        return self.spans()


@contextmanager
def otlp_collector() -> Generator[Collector]:
    """Serve a collector on a loopback port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    collector = server.collector = Collector(f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    try:
        yield collector
    finally:
        collector.is_over.set()
        server.shutdown()
        serving.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    collector: Collector


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        collector = self.server.collector
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            self.send_error(404)
            return
        collector.headers.append(dict(self.headers))
        if collector.is_silent.is_set():
            collector.is_over.wait()
            return
        collector.bodies.append(body)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


def _decoded(body: bytes) -> list[CollectedSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    spans: list[CollectedSpan] = []
    for resource in request.resource_spans:
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        spans += [
            CollectedSpan(
                name=span.name,
                kind=span.kind,
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                state=span.trace_state,
                is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                attributes={each.key: each.value.string_value for each in span.attributes},
                service=about.get("service.name", ""),
            )
            for scope in resource.scope_spans
            for span in scope.spans
        ]
    return spans
