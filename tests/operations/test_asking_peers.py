"""Real servers, on the SDK and on fastmcp, that ask in mid-operation, over both transports. SPEC §calls."""

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest

from app.core.addresses import resource_address
from app.core.interrupts import ResumeEntry
from app.core.problem import Problem
from app.operations.board import Board, Settled, Waiting
from app.operations.reads import read
from app.operations.tool_call import call
from tests.operations.test_real_peers import board_of, ignore
from tests.support.eliciting import declines, dismisses, fills, opens
from tests.support.peers.programs import ELICITING_SERVER, http_definition, http_peer, stdio_definition

pytestmark = [pytest.mark.spec("calls"), pytest.mark.timeout(60)]
TOOLS = ["deploy", "pay", "poll"]
LIBRARIES = ["sdk", "fastmcp"]


@pytest.fixture(params=[(way, library) for way in ("stdio", "http") for library in LIBRARIES], scope="module")
def definition(request: pytest.FixtureRequest) -> Generator[dict[str, Any]]:
    """Give the definition of each server over each transport."""
    way, library = request.param
    tools = [*TOOLS, "order"] if library == "sdk" else TOOLS
    if way == "stdio":
        yield stdio_definition("p", ELICITING_SERVER, "stdio", library, read=tools)
        return
    with http_peer(ELICITING_SERVER, library) as url:
        yield http_definition("p", url, read=tools)


async def asked(board: Board, tool: str, **arguments: Any) -> Waiting:
    waiting = await call(board, "p", tool, arguments, observe=ignore)
    assert isinstance(waiting, Waiting)
    return waiting


def text(ended: Any) -> str:
    assert isinstance(ended, Settled)
    result: Any = ended.result
    assert result["isError"] is False, result
    return result["content"][0]["text"]


async def test_forms_are_filled_in_declined_dismissed_and_followed_by_others(
    definition: dict[str, Any],
) -> None:
    async with board_of(definition) as board:

        async def answer(*answers: Any) -> str:
            end: Any = await asked(board, "deploy", service="api")
            for each in answers:
                (interrupt,) = end.interrupts
                end = await board.resume([each(interrupt.id)], observe=ignore)
            return text(end)

        def env(name: str) -> Any:
            return partial(fills, env=name)

        def sure(*, is_sure: bool) -> Any:
            return partial(fills, sure=is_sure)

        assert await answer(env("staging")) == "deployed api to staging"
        assert await answer(declines) == "api: decline"
        assert await answer(dismisses) == "api: cancel"
        assert await answer(env("prod"), sure(is_sure=True)) == "deployed api to prod"
        assert await answer(env("prod"), sure(is_sure=False)) == "api: accept at the end"
        assert await answer(env("prod"), declines) == "api: decline at the end"
        assert board.is_empty is False
        assert board.open_interrupts() == ()


async def test_a_page_and_a_form_are_one_set(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        waiting = await asked(board, "pay")
        by_mode = {each.metadata["mode"]: each for each in waiting.interrupts}
        assert by_mode["url"].metadata["host"] == "pay.example"
        entries: list[ResumeEntry] = [opens(by_mode["url"].id), declines(by_mode["form"].id)]
        end = await board.resume(entries, observe=ignore)
        assert text(end) == "page accept, receipt decline, state paying"


async def test_a_state_alone_goes_back_until_there_is_a_result(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        assert text(await call(board, "p", "poll", {}, observe=ignore)) == "polled 2 times"


@pytest.mark.spec("addresses")
async def test_resources_and_prompts_ask(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        for uri in (resource_address("p", "memo://locked/ada"), "p:///prompts/introduce?name=ada"):
            waiting = await read(board, uri, observe=ignore)
            assert isinstance(waiting, Waiting)
            (interrupt,) = waiting.interrupts
            assert interrupt.message == "May ada know?"
            end = await board.resume([fills(interrupt.id, sure=True)], observe=ignore)
            assert isinstance(end, Settled)
            assert "about ada: accept" in str(end.result)


async def test_the_resolver_of_the_sdk_is_answered() -> None:
    async with board_of(stdio_definition("p", ELICITING_SERVER, "stdio", "sdk", read=["order"])) as board:
        waiting = await asked(board, "order", pizza="margherita")
        end = await board.resume([fills(waiting.interrupts[0].id, inches=12)], observe=ignore)
        assert text(end) == "margherita of 12"
        waiting = await asked(board, "order", pizza="margherita")
        with pytest.raises(Problem) as raised:
            await board.resume([fills(waiting.interrupts[0].id, inches="many")], observe=ignore)
        assert raised.value.code == "answer-invalid"
