"""classify.py: the table of SPEC §revision, row by row, first match wins."""

import pytest

from app.connections.classify import (
    Peer,
    Retry,
    discover_fault,
    discovered,
    is_complete,
    list_fault,
    list_refused,
)
from app.connections.transport import AddressNotSent, Lost
from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.core.json_value import Json, JsonObject
from app.core.problem import Problem
from app.core.problems import ServerUnavailable

PEER = Peer("p", "http")
GOOD: JsonObject = {"supportedVersions": ["2025-11-25", "2026-07-28"], "capabilities": {}}
OURS: Json = {"supported": ["2026-07-28"], "requested": "2026-07-28"}


def verdict(answer: Answer) -> object:
    """Return the verdict, a Problem by its code."""
    try:
        return discovered(answer, PEER)
    except Problem as problem:
        return problem.code


def error(code: int, http_status: int | None = None, data: Json = None) -> RemoteError:
    return RemoteError(code, "remote words", data, http_status)


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "answer, expected",
    [
        (HttpRefusal(408), "server-unavailable"),
        (HttpRefusal(429), "server-unavailable"),
        (HttpRefusal(500), "server-unavailable"),
        (HttpRefusal(503), "server-unavailable"),
        (error(-32022, 500, OURS), "server-unavailable"),
        (error(-32601, 503), "server-unavailable"),
        (error(-32000, 429), "server-unavailable"),
        (HttpRefusal(302), "server-unavailable"),
        (HttpRefusal(307), "server-unavailable"),
        (error(-32020, 400), "server-unavailable"),
        (error(-32020), "server-unavailable"),
        (HttpRefusal(401, "Bearer"), "authorization-refused"),
        (HttpRefusal(401), "authorization-refused"),
        (error(-32001, 401), "authorization-refused"),
        (HttpRefusal(403, "Bearer"), "authorization-refused"),
        (HttpRefusal(403), "authorization-refused"),
        (error(-32021, 403), "authorization-refused"),
        (Result(GOOD, 1), GOOD),
        (Result({**GOOD, "resultType": "complete"}, 1), {**GOOD, "resultType": "complete"}),
        (error(-32022, 400, OURS), Retry.ONCE),
        (error(-32022, None, OURS), Retry.ONCE),
        (error(-32021, 400), "capability-required"),
        (error(-32022, 400, {"supported": ["2025-11-25"]}), "protocol-revision-unsupported"),
        (error(-32022, 400), "protocol-revision-unsupported"),
        (error(-32022, 400, {"supported": "2026-07-28"}), "protocol-revision-unsupported"),
        (error(-32022, 400, ["2026-07-28"]), "protocol-revision-unsupported"),
        (Result({**GOOD, "supportedVersions": ["2025-11-25"]}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "supportedVersions": []}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "supportedVersions": "2026-07-28"}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "supportedVersions": ["2026-07-28", 1]}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "capabilities": None}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "capabilities": []}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "resultType": "input_required"}, 1), "protocol-revision-unsupported"),
        (Result({**GOOD, "resultType": ["complete"]}, 1), "protocol-revision-unsupported"),
        (Result({}, 1), "protocol-revision-unsupported"),
        (error(-32601, 404), "protocol-revision-unsupported"),
        (error(-32601), "protocol-revision-unsupported"),
        (error(-32602), "protocol-revision-unsupported"),
        (error(-32600, 400), "protocol-revision-unsupported"),
        (error(-32000, 400), "protocol-revision-unsupported"),
        (HttpRefusal(400), "protocol-revision-unsupported"),
        (HttpRefusal(404), "protocol-revision-unsupported"),
        (HttpRefusal(405), "protocol-revision-unsupported"),
        (HttpRefusal(406), "protocol-revision-unsupported"),
        (HttpRefusal(415), "protocol-revision-unsupported"),
    ],
    ids=str,
)
def test_the_verdict_on_an_answer_to_discovery(answer: Answer, expected: object) -> None:
    assert verdict(answer) == expected


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "fault, code",
    [
        (RequestNotSent("no"), "server-unavailable"),
        (AnswerLost("no"), "server-unavailable"),
        (AnswerMalformed("no"), "protocol-revision-unsupported"),
        (AnswerTooLarge(9), "catalog-invalid"),
        (AddressNotSent("no"), "address-refused"),
    ],
)
def test_the_verdict_on_no_answer_to_discovery(fault: RequestFault, code: str) -> None:
    assert discover_fault(fault, Lost("it ended"), PEER).code == code


@pytest.mark.spec("problems")
def test_a_lost_peer_is_unavailable_with_what_is_known_of_it() -> None:
    lost = Lost("the process ended", exit_status=3, signal="SIGTERM", stderr="boom")
    problem = discover_fault(AnswerLost("x"), lost, Peer("p", "stdio"))
    assert problem.facts == {
        "server": "p",
        "transport": "stdio",
        "exitStatus": 3,
        "signal": "SIGTERM",
        "stderr": "boom",
    }
    assert problem.retryable


@pytest.mark.spec("oauth")
def test_a_refusal_that_knows_its_cause_is_that_problem_wherever_it_comes() -> None:
    cause = ServerUnavailable("p", "http", "its authorization server cannot be reached")
    answer = HttpRefusal(401, "Bearer", cause)
    with pytest.raises(ServerUnavailable) as raised:
        discovered(answer, PEER)
    for problem in (raised.value, list_refused("tools/list", answer, PEER)):
        assert problem is not cause
        assert problem.document() == cause.document()


@pytest.mark.spec("prepare")
@pytest.mark.parametrize(
    "answer, code, reason",
    [
        (error(-32601, 404), "catalog-invalid", "list-missing"),
        (error(-32603), "catalog-invalid", "list-refused"),
        (HttpRefusal(404), "catalog-invalid", "list-refused"),
        (HttpRefusal(401), "authorization-refused", None),
        (HttpRefusal(500), "server-unavailable", None),
        (error(-32021, 400), "capability-required", None),
    ],
)
def test_a_list_that_is_declared_and_not_given(
    answer: RemoteError | HttpRefusal, code: str, reason: str
) -> None:
    problem = list_refused("tools/list", answer, PEER)
    assert (problem.code, problem.facts.get("reason")) == (code, reason)


@pytest.mark.spec("prepare")
@pytest.mark.parametrize(
    "fault, code",
    [
        (AnswerMalformed("no"), "catalog-invalid"),
        (AnswerTooLarge(9), "catalog-invalid"),
        (AnswerLost("no"), "server-unavailable"),
        (RequestNotSent("no"), "server-unavailable"),
    ],
)
def test_a_list_without_an_answer(fault: RequestFault, code: str) -> None:
    assert list_fault("tools/list", fault, Lost("it ended"), PEER).code == code


@pytest.mark.spec("security")
def test_no_word_of_the_peer_enters_a_problem() -> None:
    versions: Json = ["2025-11-25", "<script>", "2024-11-05"]
    for answer in (
        error(-32603, data="remote data"),
        HttpRefusal(403, "remote challenge"),
        Result({**GOOD, "supportedVersions": versions}, 1),
    ):
        with pytest.raises(Problem) as raised:
            discovered(answer, PEER)
        document = str(raised.value.document())
        assert not any(word in document for word in ("remote words", "remote data", "challenge", "script"))
    assert "it speaks 2025-11-25, 2024-11-05)" in raised.value.detail
    assert raised.value.facts["supportedRevisions"] == ["2025-11-25", "2024-11-05"]


def test_an_absent_result_type_is_complete_and_an_unknown_one_is_not() -> None:
    assert is_complete({})
    assert is_complete({"resultType": "complete"})
    assert not is_complete({"resultType": "task"})
    assert not is_complete({"resultType": {}})
