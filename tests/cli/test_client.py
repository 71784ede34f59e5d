"""The HTTP side of the commands against answers that no good daemon gives. SPEC §cli, §agui."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest
from typing_extensions import override

from app.cli.client import DaemonClient
from app.cli.failures import AnswerLost, DaemonUnreachable, ProblemAnswer
from app.cli.target import Target
from app.core.json_value import Json, JsonObject

PROBLEM: JsonObject = {"code": "unauthenticated", "status": 401, "detail": "No token."}


class Answers(ThreadingHTTPServer):
    """Gives one scripted answer to everything and keeps what was asked."""

    def __init__(self, status: int, media: str, body: bytes, *, cut: bool) -> None:
        super().__init__(("127.0.0.1", 0), AnswersHandler)
        self.scripted = (status, media, body, cut)
        self.asked: list[tuple[str, dict[str, str], Json]] = []


class AnswersHandler(BaseHTTPRequestHandler):
    server: Answers  # pyright: ignore[reportIncompatibleVariableOverride] the base names it loosely

    def do_POST(self) -> None:
        status, media, body, cut = self.server.scripted
        asked = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), asked))
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body) + 100 * cut))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def answering(
    status: int, body: bytes, media: str = "application/json", *, cut: bool = False
) -> Generator[tuple[DaemonClient, Answers]]:
    with Answers(status, media, body, cut=cut) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with DaemonClient(Target(f"http://127.0.0.1:{server.server_port}", "the-token")) as client:
                yield client, server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.spec("cli")
def test_an_action_is_posted_with_the_token_and_its_result_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with answering(200, b'{"servers": []}') as (client, server):
        assert client.act("a b/c", {"kind": "workspace.mcp.list"}) == {"servers": []}
    [(path, headers, asked)] = server.asked
    assert path == "/v1/workspaces/a%20b%2Fc/actions"
    assert headers["Authorization"] == "Bearer the-token"
    assert asked == {"kind": "workspace.mcp.list"}


@pytest.mark.spec("cli")
def test_a_problem_is_raised_with_all_its_facts() -> None:
    with answering(401, orjson.dumps(PROBLEM), "application/problem+json") as (client, _):
        with pytest.raises(ProblemAnswer) as refused:
            client.act("w", {"kind": "x"})
        assert refused.value.problem == PROBLEM
        with pytest.raises(ProblemAnswer) as refused:
            list(client.run("w", thread="t"))
        assert refused.value.problem == PROBLEM


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "status, body",
    [
        (200, b"<html>"),
        (404, b'{"detail": "Not Found"}'),
        (200, b"[]"),
        (302, b""),
        (500, b"oops"),
        (200, b""),
    ],
)
def test_a_stranger_at_the_address_is_no_daemon(status: int, body: bytes) -> None:
    with answering(status, body) as (client, _), pytest.raises(DaemonUnreachable):
        client.act("w", {"kind": "x"})


@pytest.mark.spec("cli")
def test_a_run_posts_an_agui_input_and_gives_its_events() -> None:
    first, second = {"type": "RUN_STARTED", "text": "line\u2028separator"}, {"type": "RUN_FINISHED"}
    body = b": keep-alive\n\ndata: " + orjson.dumps(first) + b"\n\ndata: " + orjson.dumps(second) + b"\n\n"
    with answering(200, body, "text/event-stream") as (client, server):
        events = list(client.run("w", thread="t-1", action={"kind": "x"}))
        list(client.run("w", thread="t-1", resume=[{"interruptId": "i", "status": "cancelled"}]))
    assert events == [first, second]
    (_, headers, asked), (_, _, resumed) = server.asked
    assert headers["Accept"] == "text/event-stream"
    assert isinstance(asked, dict)
    assert isinstance(resumed, dict)
    assert asked["threadId"] == resumed["threadId"] == "t-1"
    assert asked["runId"] != resumed["runId"]
    assert asked["protocolVersion"] == "1.0"
    assert asked["messages"] == []
    assert asked["forwardedProps"] == {"plurnk": {"workspace": "w", "action": {"kind": "x"}}}
    assert "resume" not in asked
    assert resumed["forwardedProps"] == {"plurnk": {"workspace": "w"}}
    assert resumed["resume"] == [{"interruptId": "i", "status": "cancelled"}]


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "body, media, cut",
    [
        (b'data: {"type": "RUN_STARTED"}\n\n', "text/event-stream", True),
        (b"data: {\n\n", "text/event-stream", False),
        (b"{}", "application/json", False),
    ],
    ids=["cut", "no JSON", "no stream"],
)
def test_a_broken_stream_is_an_answer_lost(body: bytes, media: str, *, cut: bool) -> None:
    with answering(200, body, media, cut=cut) as (client, _), pytest.raises(AnswerLost):
        list(client.run("w", thread="t"))


@pytest.mark.spec("cli")
def test_a_cut_answer_is_lost_and_its_effect_unknown() -> None:
    with answering(200, b'{"servers"', cut=True) as (client, _), pytest.raises(AnswerLost):
        client.act("w", {"kind": "x"})


@pytest.mark.spec("cli")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1", "http://[::1", "nonsense"])
def test_nobody_at_the_address_is_said(url: str) -> None:
    with pytest.raises(DaemonUnreachable), DaemonClient(Target(url, None)) as client:
        client.act("w", {"kind": "x"})
