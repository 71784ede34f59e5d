"""spoken.py: what an endpoint says it speaks, out of answers as servers in the field give them. SPEC §revision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.connections.spoken import REVISIONS_SHOWN, Spoken, spoken, spoken_of
from app.core.answers import HttpRefusal, RemoteError
from app.core.json_value import Json

pytestmark = pytest.mark.spec("revision")

NAMES_ITS_OWN = (
    "Bad Request: Unsupported protocol version: 2026-07-28"
    " (supported versions: 2025-11-25, 2025-06-18, 2024-11-05)"
)
HANDSHAKE = "it waits for initialize or a session, with which earlier revisions begin"


@pytest.mark.parametrize(
    "code, message, data, told",
    [
        (
            -32601,
            "Method not found",
            None,
            "JSON-RPC error -32601: it does not know the method, as servers of earlier revisions do",
        ),
        (
            -32602,
            "Invalid request parameters",
            "",
            (
                "JSON-RPC error -32602: it refuses the parameters of a method that it does not know, as servers of"
                " earlier revisions do"
            ),
        ),
        (-32600, "Bad Request: Missing session ID", None, f"JSON-RPC error -32600: {HANDSHAKE}"),
        (-32000, "Bad Request: Server not initialized", None, f"JSON-RPC error -32000: {HANDSHAKE}"),
        (-32000, "no", None, "JSON-RPC error -32000"),
        (-32022, "no", {"supported": "2025-11-25"}, "JSON-RPC error -32022"),
        (-32022, "2024-11-05", {"supported": [5, "x", "1.0"]}, "JSON-RPC error -32022"),
        (-32000, "built 12025-11-25, v2025-13-01, 2025-06-180, a-2025-06-18", None, "JSON-RPC error -32000"),
    ],
)
def test_an_error_tells_what_it_means(code: int, message: str, data: Json, told: str) -> None:
    assert spoken(RemoteError(code, message, data, 400)) == Spoken(told)


@pytest.mark.parametrize(
    "answer, revisions",
    [
        (RemoteError(-32000, NAMES_ITS_OWN, None, 400), ("2025-11-25", "2025-06-18", "2024-11-05")),
        (RemoteError(-32022, "no", {"supported": ["2025-11-25", "<b>"]}, 400), ("2025-11-25",)),
    ],
)
def test_the_revisions_that_an_endpoint_names_are_told(
    answer: RemoteError, revisions: tuple[str, ...]
) -> None:
    told = f"JSON-RPC error {answer.code}: it speaks {', '.join(revisions)}"
    assert spoken(answer) == Spoken(told, revisions)


@pytest.mark.parametrize(
    "status, told",
    [
        (404, ": nothing takes a POST there: a wrong path, or the HTTP+SSE transport of revision 2024-11-05"),
        (405, ": nothing takes a POST there: a wrong path, or the HTTP+SSE transport of revision 2024-11-05"),
        (415, ""),
    ],
)
def test_a_status_tells_what_it_can(status: int, told: str) -> None:
    assert spoken(HttpRefusal(status)) == Spoken(f"HTTP status {status}{told}")


def test_each_revision_is_told_once_and_not_too_many() -> None:
    assert spoken_of(["2025-11-25", "2025-11-25", "later"], "x") == Spoken(
        "x: it speaks 2025-11-25", ("2025-11-25",)
    )
    many = spoken_of([f"2025-01-{day:02}" for day in range(1, 29)], "x")
    assert len(many.revisions) == REVISIONS_SHOWN


@given(st.text(), st.lists(st.text()) | st.text())
def test_no_word_of_the_endpoint_is_repeated(message: str, supported: Json) -> None:
    for data in ({"supported": supported}, supported):
        told = spoken(RemoteError(-1, f"{message} qqsecretqq", data))
        assert set(told.answered) <= set("JSON-RPC error -1: it speaks 0123456789-, ") | set(HANDSHAKE)
        assert "qqsecretqq" not in told.answered
