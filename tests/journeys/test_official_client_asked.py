"""The official AG-UI client answers what real servers ask in mid-operation. SPEC §agui, §calls."""

from typing import Any

import pytest

from tests.journeys.test_official_client import attach, check_result, types
from tests.support.daemon import Daemon
from tests.support.official_client import Answer, OfficialClient, official_client
from tests.support.peers.programs import ELICITING_SERVER, stdio_definition

# npm may have to install the client first.
pytestmark = [pytest.mark.timeout(400), pytest.mark.spec("agui"), pytest.mark.spec("calls")]

DECLINE = {"status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}}


@pytest.fixture(params=["sdk", "fastmcp"], scope="module")
async def asking(client: OfficialClient, request: pytest.FixtureRequest) -> str:
    """The workspace with an asking server ``shop``."""
    workspace = f"asked-{request.param}"
    tools = ["deploy", "pay"]
    definition = stdio_definition("shop", ELICITING_SERVER, "stdio", request.param, read=tools)
    check_result(await attach(client, workspace, definition), "workspace.mcp.attach")
    return workspace


def action(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"kind": "workspace.mcp.call", "server": "shop", "tool": tool, "arguments": arguments}


def interrupts(answer: Answer) -> list[dict[str, Any]]:
    """Return what the client holds open; it took every event as it is."""
    assert (answer["complaints"], answer["faults"], answer["error"], answer["broken"]) == ([], [], None, None)
    assert (answer["result"], types(answer)[-1]) == (None, "RUN_FINISHED")
    assert answer["pending"] == answer["events"][-1]["outcome"]["interrupts"]
    assert set(answer["state"]["plurnk"]["interactions"]) == {each["id"] for each in answer["pending"]}
    return answer["pending"]


def resolved(interrupt: dict[str, Any], **payload: Any) -> dict[str, Any]:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def said(answer: Answer) -> str:
    """Return the text of the call's result; nothing is open any more."""
    assert (answer["complaints"], answer["faults"], answer["pending"]) == ([], [], [])
    plurnk = answer["state"]["plurnk"]
    assert (plurnk["operations"], plurnk["interactions"]) == ({}, {})
    return check_result(answer, "workspace.mcp.call")["content"][0]["text"]


async def test_a_form_a_second_round_and_an_end(client: OfficialClient, asking: str) -> None:
    thread = f"deploy-{asking}"
    first = await client.run(asking, action("deploy", service="api"), thread=thread)
    (where,) = interrupts(first)
    assert where["responseSchema"]["properties"]["env"]["enum"] == ["staging", "prod"]
    second = await client.run(asking, thread=thread, resume=[resolved(where, env="prod")])
    (sure,) = interrupts(second)
    assert (sure["message"], sure["toolCallId"]) == ("Really?", where["toolCallId"])
    assert not {"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "CUSTOM"} & set(types(second))
    last = await client.run(asking, thread=thread, resume=[resolved(sure, sure=True)])
    assert said(last) == "deployed api to prod"
    (result,) = [event for event in last["events"] if event["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == where["toolCallId"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [(DECLINE, "api: decline"), ({"status": "cancelled"}, "api: cancel")],
    ids=["decline", "cancel"],
)
async def test_a_form_is_declined_or_dismissed(
    client: OfficialClient, asking: str, answer: dict[str, Any], text: str
) -> None:
    thread = f"{answer.get('metadata') and 'declined'}-{asking}"
    (where,) = interrupts(await client.run(asking, action("deploy", service="api"), thread=thread))
    last = await client.run(asking, thread=thread, resume=[{"interruptId": where["id"], **answer}])
    assert said(last) == text


async def test_a_page_is_consented_to_and_the_form_beside_it_declined(
    client: OfficialClient, asking: str
) -> None:
    thread = f"pay-{asking}"
    pending = interrupts(await client.run(asking, action("pay"), thread=thread))
    page, receipt = sorted(pending, key=lambda each: each["metadata"]["plurnk"]["mode"], reverse=True)
    plurnk = page["metadata"]["plurnk"]
    assert (plurnk["url"], plurnk["host"]) == ("https://pay.example/checkout?order=1", "pay.example")
    assert page["message"] == "Server 'shop' asks you to open a page at pay.example: Pay first."
    consent = {"interruptId": page["id"], "status": "resolved"}
    last = await client.run(
        asking, thread=thread, resume=[consent, {"interruptId": receipt["id"], **DECLINE}]
    )
    assert said(last) == "page accept, receipt decline, state paying"


async def test_another_client_adopts_the_question_of_one_that_vanished(
    client: OfficialClient, daemon: Daemon, client_directory: Any, asking: str
) -> None:
    thread = f"adopted-{asking}"
    async with official_client(client_directory, daemon) as vanishing:
        pending = interrupts(await vanishing.run(asking, action("deploy", service="api"), thread=thread))
    assert interrupts(await client.run(asking, thread=thread)) == pending
    last = await client.run(asking, thread=thread, resume=[resolved(pending[0], env="staging")])
    assert said(last) == "deployed api to staging"
