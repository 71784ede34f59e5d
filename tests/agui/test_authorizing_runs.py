"""Runs of actions that wait for a person to sign in: 202 in the result, ``pending`` in the state."""

from typing import Any

import pytest

from app.core.answers import HttpRefusal
from app.core.oauth_problems import OAuthCallbackInvalid
from app.workspaces.pending import authorization
from tests.support.agui_runs import EMPTY, STARTED, finished, interrupts_of, refused, types
from tests.support.board_house import CATALOG, RESULT
from tests.support.doors_house import doors_house
from tests.support.sign_ins import FOREIGN, GatedAttempt, oauth, peer_answers

pytestmark = pytest.mark.spec("agui", "oauth")

CALL = {"kind": "workspace.mcp.call"}
ATTACH = {"kind": "workspace.mcp.attach", "server": oauth()}
STEPS = [
    {"type": "STEP_STARTED", "stepName": "prepare:p"},
    {"type": "STEP_FINISHED", "stepName": "prepare:p"},
]


def completing(callback_url: str) -> dict[str, Any]:
    return {"kind": "workspace.mcp.oauth.complete", "name": "p", "callbackUrl": callback_url}


async def test_an_attach_that_waits_for_a_sign_in_and_what_its_callback_does() -> None:
    attempt = GatedAttempt()
    async with doors_house({}) as doors:
        connector = doors.house.connector
        connector.catalogs["p"] = CATALOG
        connector.protected.add("p")
        connector.attempts.append(attempt)
        events = await doors.run(ATTACH)
        shown: dict[str, Any] = authorization(attempt)
        entry = {"name": "p", "action": ATTACH["kind"], "expiresAt": shown["expiresAt"]}
        parked = {"status": 202, "authorization": shown}
        assert events == [
            STARTED,
            {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": EMPTY}},
            *STEPS,
            {
                "type": "STATE_DELTA",
                "delta": [
                    {"op": "add", "path": "/plurnk/pending/p", "value": entry},
                    {"op": "replace", "path": "/plurnk/rev", "value": 1},
                ],
            },
            *finished({"kind": ATTACH["kind"], "ok": True, "result": parked}),
        ]
        pending = {**EMPTY, "rev": 1, "pending": {"p": entry}}
        snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": pending}}
        wrong = OAuthCallbackInvalid("p", "its state is another", is_over=False)
        kind = completing("")["kind"]
        assert await doors.run(completing(FOREIGN)) == [STARTED, snapshot, *finished(refused(kind, wrong))]
        events = await doors.run(completing(attempt.callback))
        assert events[:2] == [STARTED, snapshot]
        assert [each["delta"][0]["path"] for each in events if each["type"] == "STATE_DELTA"] == [
            "/plurnk/pending/p",
            "/plurnk/servers/p",
        ]
        assert events[-1]["result"]["result"]["status"] == 201
        assert events[-1]["outcome"] == {"type": "success"}


async def test_a_call_that_waits_for_a_sign_in_and_how_its_resume_ends() -> None:
    attempt = GatedAttempt()
    async with doors_house() as doors:
        doors.house.connector.catalogs["p"] = CATALOG
        await doors.run({"kind": "workspace.mcp.attach", "server": oauth(read=["get"])})
        doors.peer.attempts.append(attempt)
        peer_answers(doors.house, HttpRefusal(401), RESULT)
        (asked,) = interrupts_of(await doors.run({**CALL, "server": "p", "tool": "get"}))
        assert (asked["reason"], asked["metadata"]["plurnk"]["url"]) == ("plurnk:authorization", attempt.url)

        def handing(callback_url: str) -> list[dict[str, Any]]:
            payload = {"callbackUrl": callback_url}
            return [{"interruptId": asked["id"], "status": "resolved", "payload": payload}]

        wrong = await doors.run(resume=handing(FOREIGN))
        assert (wrong[-1]["type"], wrong[-1]["code"]) == ("RUN_ERROR", "oauth-callback-invalid")
        assert interrupts_of(await doors.run()) == [asked]
        events = await doors.run(resume=handing(attempt.callback))
        assert "TOOL_CALL_RESULT" in types(events)
        result = events[-1]["result"]
        assert (result["kind"], result["result"]["content"]) == (CALL["kind"], RESULT["content"])


async def test_a_resume_that_used_its_callback_up_ends_so_that_clients_forget_the_question() -> None:
    attempt = GatedAttempt()
    attempt.failure = OAuthCallbackInvalid("p", "its iss is another", is_over=True)
    async with doors_house() as doors:
        doors.house.connector.catalogs["p"] = CATALOG
        await doors.run({"kind": "workspace.mcp.attach", "server": oauth(read=["get"])})
        doors.peer.attempts.append(attempt)
        peer_answers(doors.house, HttpRefusal(401))
        (asked,) = interrupts_of(await doors.run({**CALL, "server": "p", "tool": "get"}))
        payload = {"callbackUrl": attempt.callback}
        entry = {"interruptId": asked["id"], "status": "resolved", "payload": payload}
        events = await doors.run(resume=[entry])
    assert types(events)[-2:] == ["CUSTOM", "RUN_FINISHED"]
    problem = events[-1]["result"]["problem"]
    assert (problem["code"], problem["outcome"]) == ("oauth-callback-invalid", "rejected")
