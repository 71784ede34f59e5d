"""Sign-ins over REST: 202 with the URL, listed while it waits, completed by the callback's own path."""

import pytest

from app.core.answers import HttpRefusal, RemoteError
from app.core.oauth_problems import OAuthCallbackInvalid
from app.workspaces.pending import authorization
from tests.support.board_house import CATALOG, RESULT
from tests.support.doors_house import doors_house
from tests.support.sign_ins import FOREIGN, GatedAttempt, oauth, peer_answers

pytestmark = pytest.mark.spec("agui", "oauth")

W = "/v1/workspaces/w"


async def test_a_change_that_waits_is_accepted_and_its_callback_answers_for_it() -> None:
    attempt, path = GatedAttempt(), f"{W}/servers/p/oauth/complete"
    async with doors_house({}) as doors:
        connector = doors.house.connector
        connector.catalogs["p"] = CATALOG
        connector.protected.add("p")
        connector.attempts.append(attempt)
        answer = await doors.post(f"{W}/servers", {"server": oauth()})
        shown = authorization(attempt)
        assert (answer.status_code, answer.json()) == (202, {"status": 202, "authorization": shown})
        listed = (await doors.get(f"{W}/servers")).json()
        assert listed["pending"] == [{"name": "p", "action": "workspace.mcp.attach", "authorization": shown}]
        refused = await doors.post(path, {"callbackUrl": FOREIGN})
        assert (refused.status_code, refused.json()["code"]) == (400, "oauth-callback-invalid")
        attached = await doors.post(path, {"callbackUrl": attempt.callback})
        assert (attached.status_code, attached.json()["server"]["state"]) == (201, "connected")
        over = await doors.post(path, {"callbackUrl": attempt.callback})
        assert (over.status_code, over.json()["code"]) == (400, "oauth-callback-invalid")


async def test_a_call_that_waits_for_a_sign_in_goes_on_with_its_answer() -> None:
    attempt = GatedAttempt()
    async with doors_house() as doors:
        doors.house.connector.catalogs["p"] = CATALOG
        await doors.post(f"{W}/servers", {"server": oauth(read=["get"])})
        doors.peer.attempts.append(attempt)
        peer_answers(doors.house, HttpRefusal(401), RESULT)
        call = {"kind": "workspace.mcp.call", "server": "p", "tool": "get"}
        asked = await doors.act(call)
        assert asked.status_code == 202
        path = f"{W}/interactions/{asked.json()['interrupts'][0]['id']}"
        wrong = await doors.post(path, {"status": "resolved", "payload": {"callbackUrl": FOREIGN}})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "oauth-callback-invalid")
        right = {"status": "resolved", "payload": {"callbackUrl": attempt.callback}}
        done = await doors.post(path, right)
        assert (done.status_code, done.json()["content"]) == (200, RESULT["content"])


async def test_a_call_that_a_callback_released_ends_in_a_problem_of_the_operation() -> None:
    first, second = GatedAttempt("first"), GatedAttempt("second")
    second.failure = OAuthCallbackInvalid("p", "its iss is another", is_over=True)
    path = f"{W}/servers/p/oauth/complete"
    async with doors_house() as doors:
        doors.house.connector.catalogs["p"] = CATALOG
        await doors.post(f"{W}/servers", {"server": oauth(read=["get"])})
        doors.peer.attempts += [first, second]
        peer_answers(doors.house, HttpRefusal(401), RemoteError(-32603, "it broke"), HttpRefusal(401))
        ends = list[tuple[str, str, str | None]]()
        for attempt in (first, second):
            await doors.act({"kind": "workspace.mcp.call", "server": "p", "tool": "get"})
            for callback in (FOREIGN, attempt.callback):
                problem = (await doors.post(path, {"callbackUrl": callback})).json()
                ends.append((problem["code"], problem["stage"], problem.get("outcome")))
    open_still = ("oauth-callback-invalid", "management", None)
    assert ends == [
        open_still,
        ("remote-error", "operation", "rejected"),
        open_still,
        ("oauth-callback-invalid", "operation", "rejected"),
    ]
