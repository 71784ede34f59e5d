"""RunAgentInput as the daemon reads it: what is refused, stripped, tolerated and ignored."""

from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from app.agui.run_input import FAULTS_MAX, ID_MAX, RunInput, parse_run_input
from app.core.door_problems import InputMalformed
from app.core.interrupts import ResumeEntry

pytestmark = pytest.mark.spec("agui")

LEAST: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": []}
ACTION = {"kind": "workspace.mcp.list"}


def read(**members: Any) -> RunInput:
    return parse_run_input({**LEAST, **members})


def test_the_least_input_asks_for_nothing() -> None:
    assert read() == RunInput("t", "r", None, {}, None, None, ())


def test_everything_we_look_at_is_kept() -> None:
    assert read(
        parentRunId="p",
        protocolVersion="1.0",
        state={"app": {"n": None}},
        forwardedProps={"plurnk": {"workspace": "w", "action": ACTION}},
        resume=[
            {"interruptId": "i", "status": "resolved", "payload": {"a": None}, "metadata": {"plurnk": 1}}
        ],
    ) == RunInput(
        thread_id="t",
        run_id="r",
        parent_run_id="p",
        state={"app": {"n": None}},
        workspace="w",
        action={"kind": "workspace.mcp.list"},
        resume=(ResumeEntry("i", "resolved", {"a": None}, {"plurnk": 1}),),
    )


def test_snake_case_is_accepted_and_camel_case_wins() -> None:
    given = parse_run_input(
        {
            "thread_id": "snake",
            "threadId": "camel",
            "run_id": "r",
            "messages": [],
            "forwarded_props": {"plurnk": {"workspace": "w"}},
            "resume": [{"interrupt_id": "i", "status": "cancelled"}],
        }
    )
    assert (given.thread_id, given.run_id, given.workspace) == ("camel", "r", "w")
    assert given.resume == (ResumeEntry("i", "cancelled"),)


def test_null_is_as_good_as_absent() -> None:
    optional = ("protocolVersion", "parentRunId", "state", "tools", "context", "forwardedProps", "resume")
    assert read(**dict.fromkeys(optional)) == read()
    assert read(forwardedProps={"plurnk": None}) == read()
    assert read(forwardedProps={"plurnk": {"workspace": None, "action": None}}) == read()
    entry = {"interruptId": "i", "status": "resolved", "payload": None, "metadata": None}
    assert read(resume=[entry]).resume == (ResumeEntry("i", "resolved"),)


@pytest.mark.parametrize("state", [None, [], "text", 7, True])
def test_a_state_that_is_no_object_is_empty(state: Any) -> None:
    assert read(state=state).state == {}


@pytest.mark.parametrize("messages", [[], [{"role": "prophet"}], [None], ["x", {"id": 1}]])
def test_messages_are_not_looked_at(messages: Any) -> None:
    assert read(messages=messages) == read()


def test_unknown_members_are_dropped_with_a_warning() -> None:
    with capture_logs() as logs:
        assert read(futureMember={"deep": 1}, other=2) == read()
    assert [(log["log_level"], log["event"], log["members"]) for log in logs] == [
        ("warning", "run-input-members-ignored", ["futureMember", "other"])
    ]


@pytest.mark.parametrize(
    "body, pointers",
    [
        (None, [""]),
        ([], [""]),
        ("text", [""]),
        ({}, ["/threadId", "/runId", "/messages"]),
        ({**LEAST, "threadId": 7}, ["/threadId"]),
        ({**LEAST, "runId": None}, ["/runId"]),
        ({**LEAST, "messages": "none"}, ["/messages"]),
        ({**LEAST, "messages": None}, ["/messages"]),
        ({**LEAST, "tools": {}}, ["/tools"]),
        ({**LEAST, "context": [7]}, ["/context/0"]),
        ({**LEAST, "resume": {}}, ["/resume"]),
        ({**LEAST, "resume": [{"interruptId": "i", "status": "maybe"}]}, ["/resume/0/status"]),
        ({**LEAST, "resume": [{"status": "resolved"}]}, ["/resume/0/interruptId"]),
        (
            {**LEAST, "resume": [{"interruptId": "i", "status": "resolved", "metadata": 7}]},
            ["/resume/0/metadata"],
        ),
    ],
)
def test_what_the_protocol_knows_must_be_right(body: Any, pointers: list[str]) -> None:
    with pytest.raises(InputMalformed) as raised:
        parse_run_input(body)
    errors: Any = raised.value.facts["errors"]
    assert [error["pointer"] for error in errors] == pointers


def test_a_malformed_input_is_described_briefly_and_never_quoted() -> None:
    entry = {"interruptId": "i", "status": "secret-canary-1234"}
    with pytest.raises(InputMalformed) as raised:
        read(resume=[entry] * 500)
    errors: Any = raised.value.facts["errors"]
    assert len(errors) == FAULTS_MAX
    assert "secret-canary" not in str(raised.value.document())


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("tools", {"name": "t", "description": "", "parameters": {}}),
        ("context", {"description": "d", "value": "v"}),
        ("resume", {"interruptId": "i", "status": "resolved"}),
    ],
)
def test_of_very_many_faulty_members_few_are_judged(name: str, good: Any) -> None:
    with pytest.raises(InputMalformed) as raised:
        read(**{name: [good] * 30 + [7] * 1000})
    errors: Any = raised.value.facts["errors"]
    assert [error["pointer"] for error in errors] == [f"/{name}/{30 + n}" for n in range(FAULTS_MAX)]
    judged = raised.value.__context__
    assert isinstance(judged, ValidationError)
    assert judged.error_count() == FAULTS_MAX


@pytest.mark.spec("limits")
@pytest.mark.parametrize("name", ["threadId", "runId", "parentRunId"])
def test_an_id_that_would_fill_everybodys_events_is_refused(name: str) -> None:
    read(**{name: "x" * ID_MAX})
    with pytest.raises(InputMalformed) as refused:
        read(**{name: "x" * (ID_MAX + 1)})
    errors: Any = refused.value.facts["errors"]
    assert [error["pointer"] for error in errors] == [f"/{name}"]
