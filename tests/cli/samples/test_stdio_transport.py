"""How the stdio transport of the samples takes lines, cancellations and the end of its input."""

import io
import json
import threading
from typing import Any

import pytest
from typing_extensions import override

from app.cli.samples.server import META, REVISION, Report, SampleServer, Tool
from app.cli.samples.stdio_transport import StdioServing

METADATA = {f"{META}protocolVersion": REVISION, f"{META}clientCapabilities": {}}


def line(**message: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def request(identity: int, method: str, **params: Any) -> str:
    meta = {**METADATA, "progressToken": identity}
    return line(id=identity, method=method, params={**params, "_meta": meta})


def serve(server: SampleServer, text: str) -> list[dict[str, Any]]:
    written = io.StringIO()
    StdioServing(server, io.StringIO(text), written).run()
    return [json.loads(each) for each in written.getvalue().splitlines()]


def done(_arguments: dict[str, Any], _report: Report) -> str:
    return "done"


def sample(run: Any) -> SampleServer:
    definition = {"name": "work", "description": "Work.", "inputSchema": {"type": "object"}}
    return SampleServer("sample", "", (Tool(definition, run),))


def test_each_request_is_answered_on_a_line_of_its_own_with_its_id() -> None:
    answers = serve(sample(done), request(1, "tools/list") + request(2, "nothing"))
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[1]["result"]["tools"][0]["name"] == "work"
    assert by_id[2]["error"]["code"] == -32601


def test_a_line_that_is_no_message_is_passed_over() -> None:
    answers = serve(sample(done), "noise\n[1]\n" + request(1, "tools/list"))
    assert [answer["id"] for answer in answers] == [1]


@pytest.mark.spec("calls")
def test_a_cancelled_request_gets_no_further_message() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    def work(_arguments: dict[str, Any], report: Report) -> str:
        entered.set()
        assert cancelled.wait(10)
        report(1, 2, "half")
        return "done"

    class Lines(io.StringIO):
        """Gives the cancellation once the tool runs, and lets it go on once that is read."""

        @override
        def __iter__(self) -> Any:
            yield request(1, "tools/call", name="work")
            assert entered.wait(10)
            yield line(method="notifications/cancelled", params={"requestId": 1})
            cancelled.set()

    written = io.StringIO()
    StdioServing(sample(work), Lines(), written).run()
    assert written.getvalue() == ""


def test_progress_is_reported_with_the_callers_token() -> None:
    def work(_arguments: dict[str, Any], report: Report) -> str:
        report(1, 2, "half")
        return "done"

    answers = serve(sample(work), request(5, "tools/call", name="work"))
    assert answers[0] == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": 5, "progress": 1, "total": 2, "message": "half"},
    }
    assert answers[1]["result"]["content"] == [{"type": "text", "text": "done"}]
