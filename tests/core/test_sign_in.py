"""Which refusals a sign-in can mend, and the question for its callback."""

from typing import Any

import pytest

from app.core.answers import Answer, HttpRefusal, RemoteError, Result
from app.core.definitions import parse_definition
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import AuthorizationRefused
from app.core.sign_in import CALLBACK_SCHEMA, callback_url, is_demanded, is_possible, sign_in_question

pytestmark = pytest.mark.spec("oauth", "calls")

SCOPE = 'Bearer error="insufficient_scope", scope="a b"'
HTTP = {"name": "p", "transport": "http", "url": "http://p.example/mcp"}
REDIRECT = "http://127.0.0.1:7777/cb"
SECRET = "${CS}"
ABOUT: Any = {"operation": "op-1", "server": "p", "tool": "t"}


@pytest.mark.parametrize(
    ("answer", "demanded"),
    [
        (HttpRefusal(401), True),
        (HttpRefusal(401, 'Bearer error="invalid_token"'), True),
        (HttpRefusal(403, SCOPE), True),
        (HttpRefusal(403, 'Bearer error="invalid_token"'), False),
        (HttpRefusal(403, "Bearer"), False),
        (HttpRefusal(403), False),
        (HttpRefusal(400, SCOPE), False),
        (HttpRefusal(401, problem=AuthorizationRefused("p", "no")), False),
        (HttpRefusal(403, SCOPE, AuthorizationRefused("p", "no")), False),
        (RemoteError(-32001, "no", http_status=401), False),
        (Result({}, 2), False),
    ],
    ids=repr,
)
def test_a_sign_in_is_demanded_by_401_and_by_a_scope_that_is_missing(
    answer: Answer, *, demanded: bool
) -> None:
    assert is_demanded(answer) is demanded


@pytest.mark.parametrize(
    ("authorization", "possible"),
    [
        ({"type": "oauth", "redirectUrl": REDIRECT}, True),
        ({"type": "oauth", "redirectUrl": REDIRECT, "clientId": "c", "clientSecret": SECRET}, True),
        ({"type": "oauth", "redirectUrl": REDIRECT, "clientMetadataUrl": "https://c.example/id"}, True),
        ({"type": "client-credentials", "clientId": "c", "clientSecret": SECRET}, False),
        ({"type": "bearer", "token": SECRET}, False),
        (None, False),
    ],
    ids=repr,
)
def test_a_person_signs_in_where_the_definition_says_so(authorization: Any, *, possible: bool) -> None:
    given = HTTP if authorization is None else {**HTTP, "authorization": authorization}
    assert is_possible(parse_definition(given)) is possible


def test_no_person_signs_in_at_a_child_or_at_what_is_no_definition() -> None:
    assert not is_possible(parse_definition({"name": "p", "transport": "stdio", "command": "/p"}))
    assert not is_possible(None)


def test_the_question_shows_who_asks_where_to_sign_in() -> None:
    url = "https://as.example/authorize?state=s"
    question = sign_in_question(url, ABOUT)
    assert question.reason == "plurnk:authorization"
    assert question.message == (
        "Server 'p' asks you to sign in at as.example and to hand over the whole URL "
        "that the browser is sent back to."
    )
    assert question.response_schema == CALLBACK_SCHEMA
    assert question.metadata == {**ABOUT, "url": url, "host": "as.example"}


def test_a_page_that_nobody_can_judge_is_asked_of_nobody() -> None:
    with pytest.raises(OAuthMetadataInvalid):
        sign_in_question("https://as.example@evil.example/", ABOUT)


@pytest.mark.parametrize(
    ("entry", "callback"),
    [
        (ResumeEntry("int-1", "resolved", {"callbackUrl": "http://127.0.0.1/cb?code=c"}), True),
        (ResumeEntry("int-1", "cancelled", {"callbackUrl": "http://127.0.0.1/cb?code=c"}), False),
        (ResumeEntry("int-1", "cancelled"), False),
    ],
)
def test_only_a_resolved_answer_hands_over_a_callback(entry: ResumeEntry, *, callback: bool) -> None:
    assert (callback_url(entry) is not None) is callback
