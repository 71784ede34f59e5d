"""What a person sees of results and Problems. SPEC §cli, §problems."""

import io
from typing import Any

import pytest
from rich.console import Console

from app.cli.failures import ProblemAnswer, QuestionOpen, UsageFault
from app.cli.screen import Screen
from app.core.json_value import JsonObject

CONNECTED: JsonObject = {
    "name": "time",
    "source": "workspace",
    "transport": "stdio",
    "state": "connected",
    "server": {"name": "mcp-time", "version": "2026.8"},
    "tools": ["get_current_time", "convert_time"],
    "resources": 0,
    "prompts": 1,
    "withheld": [{"name": "odd\x1b[2J", "reason": "schema-missing"}],
}
DOWN: JsonObject = {
    "name": "docs",
    "source": "service",
    "transport": "http",
    "state": "unavailable",
    "problem": {"code": "server-unavailable", "detail": "Server 'docs' does not answer [red]at all[/red]."},
}


def shown(width: int = 100) -> tuple[Screen, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Screen(Console(file=out, width=width), Console(file=err, width=width)), out, err


@pytest.mark.spec("cli")
def test_the_list_is_a_table_with_the_problem_of_each_server_below() -> None:
    screen, out, _ = shown()
    screen.show_servers("default", {"servers": [DOWN, CONNECTED], "detached": ["old"], "pending": []})
    lines = [line.split() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[0] == [
        "server",
        "state",
        "from",
        "transport",
        "tools",
        "resources",
        "prompts",
        "implementation",
    ]
    assert lines[2] == ["docs", "unavailable", "service", "http", "-", "-", "-", "-"]
    assert lines[3] == ["time", "connected", "workspace", "stdio", "2", "0", "1", "mcp-time", "2026.8"]
    assert "docs: Server 'docs' does not answer [red]at all[/red]." in out.getvalue()
    assert "Hidden defaults: old" in out.getvalue()


def test_an_empty_workspace_says_how_to_begin() -> None:
    screen, out, err = shown()
    screen.show_servers("default", {"servers": [], "detached": [], "pending": []})
    assert out.getvalue() == "Nothing is attached to workspace 'default'.\n"
    assert "plurnk-mcpd attach NAME" in err.getvalue()


def test_a_pending_sign_in_shows_its_url_in_one_piece() -> None:
    screen, out, _ = shown(40)
    url = "https://as.example/authorize?" + "x" * 100
    pending: JsonObject = {
        "name": "github",
        "action": "attach",
        "authorization": {"url": url, "expiresAt": "soon"},
    }
    screen.show_servers("default", {"servers": [CONNECTED], "pending": [pending]})
    assert url in out.getvalue()


def test_an_attached_server_shows_what_it_offers_and_what_is_withheld() -> None:
    screen, out, _ = shown()
    screen.show_server("attached", "default", CONNECTED)
    text = out.getvalue()
    assert "attached time (stdio, workspace default)" in text
    assert "get_current_time, convert_time" in text
    assert "0 resources, 1 prompt\n" in text
    assert "odd\\x1b[2J: it has no input schema (schema-missing)" in text


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "result, out_text, err_text",
    [
        ({"isError": False, "content": [{"type": "text", "text": "[b]hi\x1b[2J"}]}, "[b]hi\\x1b[2J\n", ""),
        (
            {"isError": True, "content": [{"type": "text", "text": "no"}]},
            "no\n",
            "✗ The tool reports an error:\n",
        ),
        ({"isError": False, "content": [], "structuredContent": {"a": 1}}, '{\n  "a": 1\n}\n', ""),
        (
            {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]},
            "[image image/png, about 3 bytes; --json has it]\n",
            "",
        ),
        ({"content": [{"type": "resource_link", "name": "n", "uri": "u://x"}]}, "[n: u://x]\n", ""),
        ({"content": [{"type": "resource", "resource": {"uri": "u://x", "text": "t"}}]}, "t\n", ""),
        ({"content": [{"type": "resource", "resource": {"uri": "u://x"}}]}, "[resource u://x]\n", ""),
        ({"rejected": True}, "", "✗ The call was rejected; nothing was sent.\n"),
    ],
)
def test_a_tools_answer_is_shown_as_text(result: JsonObject, out_text: str, err_text: str) -> None:
    screen, out, err = shown()
    screen.show_call_result(result)
    assert (out.getvalue(), err.getvalue()) == (out_text, err_text)


def test_a_long_line_of_an_answer_is_not_broken() -> None:
    screen, out, _ = shown(40)
    screen.show_call_result({"content": [{"type": "text", "text": "word " * 50}]})
    assert out.getvalue() == "word " * 50 + "\n"


def problem(**facts: Any) -> ProblemAnswer:
    return ProblemAnswer(
        {
            "title": "Title",
            "status": 502,
            "code": "a-code",
            "detail": "What happened.",
            "retryable": False,
            **facts,
        }
    )


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "facts, lines",
    [
        ({}, ["✗ Title (a-code, 502)", "  What happened."]),
        (
            {"server": "time", "transport": "stdio", "exitStatus": 3, "stderr": "one\ntwo\x1b[2J"},
            [
                "✗ Title (a-code, 502)",
                "  What happened.",
                "  server: time   transport: stdio   exitStatus: 3",
                "  │ one",
                "  │ two\\x1b[2J",
            ],
        ),
        (
            {
                "errors": [
                    {"pointer": "/url", "message": "no [b]userinfo[/b]"},
                    {"pointer": "", "message": "m"},
                ]
            },
            ["✗ Title (a-code, 502)", "  What happened.", "  /url: no [b]userinfo[/b]", "  (the whole): m"],
        ),
        (
            {
                "cause": {"detail": "Deeper."},
                "remote": {"code": -32603, "message": "oops"},
                "operations": ["op-1"],
            },
            [
                "✗ Title (a-code, 502)",
                "  What happened.",
                "  because: Deeper.",
                "  the server says: oops (-32603)",
                "  operations: op-1",
            ],
        ),
        (
            {"retryable": True},
            ["✗ Title (a-code, 502)", "  What happened.", "  Next: Trying again later may help."],
        ),
        (
            {"code": "reference-missing", "variable": "TOKEN"},
            [
                "✗ Title (reference-missing, 502)",
                "  What happened.",
                "  Next: Set TOKEN in the daemon's environment or in its .env file, and restart it.",
            ],
        ),
    ],
)
def test_a_problem_says_what_happened_to_whom_and_what_to_do_next(
    facts: JsonObject, lines: list[str]
) -> None:
    screen, out, err = shown()
    screen.show_failure(problem(**facts))
    assert err.getvalue().splitlines() == lines
    assert out.getvalue() == ""


@pytest.mark.spec("cli")
def test_what_to_do_next_is_meant_for_the_same_daemon_and_workspace() -> None:
    _, _, err = shown()
    screen = Screen(Console(file=err), Console(file=err, width=100), " -w team")
    screen.show_failure(problem(code="server-exists", server="time"))
    assert "Next: Change it: plurnk-mcpd replace -w team time …," in err.getvalue()
    screen.show_servers("team", {"servers": []})
    assert "plurnk-mcpd attach -w team NAME URL" in err.getvalue()


def test_an_error_that_the_detail_tells_is_not_told_twice() -> None:
    screen, _, err = shown()
    error: JsonObject = {"pointer": "/thing", "message": "is required"}
    screen.show_failure(problem(detail="Nothing was sent: /thing: is required.", errors=[error]))
    assert err.getvalue().count("/thing: is required") == 1


@pytest.mark.spec("cli")
def test_an_open_question_names_its_operation_its_interrupt_and_the_way_to_answer() -> None:
    screen, _, err = shown(200)
    interrupt: JsonObject = {"id": "int-9", "message": "Call it?", "expiresAt": "2026-12-01T00:00:00Z"}
    screen.show_failure(QuestionOpen("team", "op-7", [interrupt]))
    text = err.getvalue()
    assert "Operation op-7 waits" in text
    assert "interrupt int-9, open until 2026-12-01T00:00:00Z" in text
    assert "POST /v1/workspaces/team/interactions/int-9" in text


@pytest.mark.spec("cli")
def test_an_open_form_names_its_fields_and_an_open_url_is_shown_whole() -> None:
    screen, out, err = shown(300)
    url = "https://pay.example/x?" + "o=1&" * 40
    schema: JsonObject = {"type": "object", "properties": {"env": {}, "no\x1bte": {}}, "required": ["env"]}
    about: JsonObject = {"server": "shop", "method": "elicitation/create"}
    screen.show_failure(
        QuestionOpen(
            "team",
            "op-7",
            [
                {
                    "id": "int-1",
                    "message": "Where to?",
                    "expiresAt": "2026-12-01T00:00:00Z",
                    "responseSchema": schema,
                    "metadata": {"plurnk": {**about, "mode": "form"}},
                },
                {
                    "id": "int-2",
                    "message": "Pay\u202e first.",
                    "expiresAt": "2026-12-01T00:00:00Z",
                    "responseSchema": {"type": ["object", "null"]},
                    "metadata": {"plurnk": {**about, "mode": "url", "url": url, "host": "pay.example"}},
                },
            ],
        )
    )
    assert out.getvalue() == ""
    assert err.getvalue().splitlines() == [
        "? Operation op-7 waits for an answer.",
        "  Where to?",
        "  Server shop asks for: env, no\\x1bte (optional)",
        "  interrupt int-1, open until 2026-12-01T00:00:00Z",
        (
            "  Next: answer it with POST /v1/workspaces/team/interactions/int-1"
            ' {"status": "resolved", "payload": {FIELDS}}, or {"status": "cancelled"}.'
        ),
        "  Pay\\u202e first.",
        "  Server shop wants you to open, at pay.example:",
        f"  {url}",
        "  interrupt int-2, open until 2026-12-01T00:00:00Z",
        (
            "  Next: answer it with POST /v1/workspaces/team/interactions/int-2"
            ' {"status": "resolved"} once you agree to open it, or {"status": "cancelled"}.'
        ),
    ]


def test_a_local_failure_is_two_sentences() -> None:
    screen, _, err = shown()
    screen.show_failure(UsageFault("What happened.", "What to do."))
    assert err.getvalue() == "✗ What happened.\n  Next: What to do.\n"
