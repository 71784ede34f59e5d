"""What a result that requires input asks for, and the responses that answers make of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.elicitation import REQUESTS_MAX, InputRequired, input_required
from app.core.interrupts import ResumeEntry
from app.core.operation_problems import InputUnsupported, ToolResultInvalid
from app.core.problem import Outcome
from tests.support.eliciting import (
    ENVIRONMENT,
    STATE,
    asks,
    declines,
    dismisses,
    fills,
    form,
    link,
    opens,
)
from tests.support.mcp_schema import faults

pytestmark = pytest.mark.spec("calls")

PARAMS: dict[str, Any] = {"name": "deploy", "arguments": {"svc": None}}


def required(value: dict[str, Any], tool: str | None = "deploy") -> InputRequired:
    return input_required(value, operation="op-1", server="p", tool=tool)


def message_of(url: str) -> str:
    (request,) = required(asks(q=link(url))).requests
    return request.question.message


def host_of(url: str) -> Any:
    (request,) = required(asks(q=link(url))).requests
    return request.question.metadata["host"]


def test_a_form_is_asked_with_the_schema_and_the_words_of_the_server() -> None:
    asked = required(asks(state="s", q=form("Which?")))
    (request,) = asked.requests
    assert (request.key, request.is_form, asked.request_state) == ("q", True, "s")
    question = request.question
    assert (question.reason, question.message, question.response_schema) == (
        "input_required",
        "Which?",
        ENVIRONMENT,
    )
    about = {"operation": "op-1", "server": "p", "method": "elicitation/create", "mode": "form"}
    assert question.metadata == {**about, "tool": "deploy"}
    assert required(asks(q=form()), None).requests[0].question.metadata == about


def test_a_form_need_not_name_its_mode() -> None:
    request = form()
    del request["params"]["mode"]
    assert required(asks(q=request)).requests[0].is_form


def test_a_url_is_asked_with_its_host_and_its_server_before_the_servers_own_words() -> None:
    (request,) = required(asks(q=link("https://pay.example:8443/x?o=1", "Pay first."))).requests
    assert not request.is_form
    assert request.question.message == "Server 'p' asks you to open a page at pay.example: Pay first."
    assert request.question.metadata == {
        "operation": "op-1",
        "server": "p",
        "tool": "deploy",
        "method": "elicitation/create",
        "mode": "url",
        "url": "https://pay.example:8443/x?o=1",
        "host": "pay.example",
    }


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:9/x", "127.0.0.1"),
        ("http://[::1]/x", "::1"),
        ("HTTPS://EXAMPLE.com", "example.com"),
        ("https://a.example/ü?q=http://b.example/@c", "a.example"),
        ("https://a.example#@b.example", "a.example"),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com"),
        ("https://\u0430pple.com/", "xn--pple-43d.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://a\u3002example/", "a.example"),
    ],
)
def test_the_host_is_what_a_browser_would_go_to(url: str, host: str) -> None:
    assert host_of(url) == host
    assert host in message_of(url)
    assert ("punycode" in message_of(url)) is ("xn--" in host)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "ftp://a.example/",
        "a.example/x",
        "//a.example/x",
        "",
        "https://",
        "https:///x",
        "https:a.example",
        "https:\\\\a.example",
        "https://good.example\\@evil.example/",
        "https://good.example@evil.example/",
        "https://user:pw@a.example/",
        "https://@a.example/",
        "https://a.example:0/",
        "https://a.example:99999/",
        "https://a.example:x/",
        "https://[::1/",
        "https://%65vil.example/",
        "https://a .example/",
        " https://a.example/",
        "https://a.example/\n",
        "java\tscript:alert(1)",
        "https://a.example/\u202egpj",
        "https://a.example/\u200b",
        "https://a..example/",
        f"https://{'a' * 64}.example/",
        "https://\u2100.example/",
        None,
        7,
        ["https://a.example/"],
    ],
)
def test_a_url_that_nobody_can_judge_is_not_put_to_anybody(url: Any) -> None:
    with pytest.raises(InputUnsupported) as raised:
        required(asks(q=link(url)))
    assert raised.value.outcome is Outcome.REJECTED
    assert raised.value.facts == {"server": "p"}


UNSUPPORTED: dict[str, Any] = {
    "sampling": {"method": "sampling/createMessage", "params": {}},
    "roots": {"method": "roots/list"},
    "unknown kind": {"method": "tea/make", "params": {"message": "?"}},
    "unknown mode": form(mode="hologram"),
    "null mode": form(mode=None),
    "remote reference": form(schema={"type": "object", "$ref": "https://a.example/s"}),
    "foreign dialect": form(schema={"type": "object", "$schema": "https://a.example/d"}),
    "no schema": form(schema={"type": "object", "properties": {"a": {"type": "tea"}}}),
    "too deep": form(schema={"type": "object", "properties": {"a": {"items": {}}}}),
    "too costly": form(schema={"type": "object", "properties": {"a": {"pattern": "(a{1,999}){1,999}"}}}),
}
_deep: Any = UNSUPPORTED["too deep"]["params"]["requestedSchema"]["properties"]["a"]
for _ in range(80):
    _deep["items"] = {"items": {}}
    _deep = _deep["items"]


@pytest.mark.parametrize("request_", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_one_request_that_cannot_be_put_fails_the_whole_set(request_: Any) -> None:
    with pytest.raises(InputUnsupported):
        required(asks(state=STATE, first=form(), second=request_, third=link()))


def test_as_many_as_a_person_is_asked_at_once_and_no_more() -> None:
    questions = {f"q{number}": form() for number in range(REQUESTS_MAX)}
    assert len(required(asks(**questions)).requests) == REQUESTS_MAX == 64
    with pytest.raises(InputUnsupported):
        required(asks(**questions, more=form()))


def test_forms_are_no_larger_than_is_judged_in_a_moment() -> None:
    choices: Any = {
        "type": "object",
        "properties": {"a": {"enum": [f"{number:06}" for number in range(9_000)]}},
    }
    assert len(required(asks(q=form(schema=choices), r=form(schema=choices))).requests) == 2
    with pytest.raises(InputUnsupported):
        required(asks(**{key: form(schema=choices) for key in "abcd"}))


MALFORMED: dict[str, Any] = {
    "nothing": {},
    "nulls": {"inputRequests": None, "requestState": None},
    "empty set": {"inputRequests": {}},
    "a list": {"inputRequests": [form()]},
    "a text": {"inputRequests": "q", "requestState": "s"},
    "state that is a number": {"inputRequests": {"q": form()}, "requestState": 7},
    "state that is an object": {"requestState": {"a": 1}},
    "request that is null": {"inputRequests": {"q": None}},
    "request that is a text": {"inputRequests": {"q": "elicitation/create"}},
    "no method": {"inputRequests": {"q": {"params": form()["params"]}}},
    "null method": {"inputRequests": {"q": {"method": None, "params": form()["params"]}}},
    "no params": {"inputRequests": {"q": {"method": "elicitation/create"}}},
    "null params": {"inputRequests": {"q": {"method": "elicitation/create", "params": None}}},
    "no message": {"inputRequests": {"q": {"method": "elicitation/create", "params": {"mode": "url"}}}},
    "null message": {"inputRequests": {"q": form(message=None)}},  # pyright: ignore[reportArgumentType] on purpose
    "null schema": {"inputRequests": {"q": form(requestedSchema=None)}},
    "schema of no object": {"inputRequests": {"q": form(schema={"type": "string"})}},
    "schema without a type": {"inputRequests": {"q": form(schema={"properties": {}})}},
}


@pytest.mark.parametrize("members", MALFORMED.values(), ids=MALFORMED)
def test_a_result_that_breaks_the_protocol_is_invalid(members: dict[str, Any]) -> None:
    with pytest.raises(ToolResultInvalid) as raised:
        required({"resultType": "input_required", **members})
    assert "requestState" not in raised.value.facts


@pytest.mark.parametrize("members", [{"inputRequests": None}, {"inputRequests": {}}, {}])
def test_a_state_alone_asks_nobody(members: dict[str, Any]) -> None:
    asked = required({**asks(state="s"), **members})
    assert asked == InputRequired((), "s")
    assert asked.retry(PARAMS, ()) == {**PARAMS, "requestState": "s"}


@pytest.mark.parametrize(
    "state", [STATE, "", "s" * 65536, "\ufeff\r\n\t"], ids=["odd", "empty", "64 KiB", "blank"]
)
def test_the_state_comes_back_as_it_was(state: str) -> None:
    assert required(asks(state=state, q=form())).retry(PARAMS, [dismisses("i")])["requestState"] == state


@pytest.mark.parametrize("members", [{}, {"requestState": None}])
def test_a_state_that_is_absent_stays_absent(members: dict[str, Any]) -> None:
    asked = required({**asks(q=form()), **members})
    assert asked.retry(PARAMS, [dismisses("i")]) == {**PARAMS, "inputResponses": {"q": {"action": "cancel"}}}


def test_accept_decline_and_cancel_are_three_things_on_the_wire() -> None:
    asked = required(asks(a=form(), b=form(), c=form(), d=link(), e=link(), f=link()))
    entries = [
        fills("i", env="prod"),
        declines("i"),
        dismisses("i"),
        opens("i"),
        declines("i"),
        dismisses("i"),
    ]
    again = asked.retry(PARAMS, entries)
    assert again == {
        **PARAMS,
        "inputResponses": {
            "a": {"action": "accept", "content": {"env": "prod"}},
            "b": {"action": "decline"},
            "c": {"action": "cancel"},
            "d": {"action": "accept"},
            "e": {"action": "decline"},
            "f": {"action": "cancel"},
        },
    }
    assert "inputResponses" not in PARAMS


@pytest.mark.parametrize(
    "entry",
    [
        ResumeEntry("i", "cancelled", {"env": "prod"}, {"action": "decline"}),
        ResumeEntry("i", "cancelled", None, {"plurnk": {"action": "accept"}}),
        ResumeEntry("i", "cancelled", None, {"plurnk": "decline"}),
    ],
    ids=["not ours", "an accept", "no object"],
)
def test_whatever_else_a_cancelled_answer_says_it_is_a_cancel(entry: ResumeEntry) -> None:
    again: Any = required(asks(q=form())).retry(PARAMS, [entry])
    assert again["inputResponses"] == {"q": {"action": "cancel"}}


def test_what_a_url_is_answered_with_beside_yes_or_no_is_not_sent() -> None:
    again: Any = required(asks(q=link())).retry(PARAMS, [ResumeEntry("i", "resolved", {"secret": 1})])
    assert again["inputResponses"] == {"q": {"action": "accept"}}


keys = st.text(min_size=0, max_size=8)
answers = st.sampled_from([fills("i", env="prod"), declines("i"), dismisses("i")])


@given(answered=st.dictionaries(keys, answers, max_size=8), state=st.none() | st.text(max_size=40))
def test_every_key_gets_its_own_answer_and_the_specification_agrees(
    answered: dict[str, ResumeEntry], state: str | None
) -> None:
    if not answered and state is None:
        return
    value = {**asks(state=state), "inputRequests": {key: form() for key in answered}}
    asked = required(value)
    again: Any = asked.retry(PARAMS, list(answered.values()))
    assert again.get("requestState") == state
    assert list(again.get("inputResponses", {})) == list(answered)
    assert faults("InputRequiredResult", value) == []
    if answered:
        assert faults("InputResponses", again["inputResponses"]) == []
