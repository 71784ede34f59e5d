"""Connections on their way out: all attempted, none forgotten."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from typing_extensions import override

from app.workspaces.owner import Owner
from app.workspaces.retirements import Retirements
from tests.support.gated_connection import GatedConnection, catalog

pytestmark = pytest.mark.spec("lifecycle", "shutdown")


class SlowConnection(GatedConnection):
    """Closes once it is let, or fails as no connection may."""

    def __init__(self, server: str, *, is_broken: bool = False) -> None:
        super().__init__(server, catalog())
        self.may_close = anyio.Event()
        self.is_broken = is_broken

    @override
    async def retire(self) -> str | None:
        if self.is_broken:
            raise RuntimeError("a bug")
        await self.may_close.wait()
        return await super().retire()


async def nothing() -> None:
    pass


@asynccontextmanager
async def retirements() -> AsyncGenerator[tuple[Owner, Retirements]]:
    async with anyio.create_task_group() as group:

        async def begin(owner: Owner) -> None:
            await group.start(owner.run)

        owner = Owner("w", begin=begin, on_failure=nothing)
        yield owner, Retirements("w", owner)
        owner.stop()


async def test_what_was_begun_is_waited_for_at_the_end(tmp_path: object) -> None:
    slow = SlowConnection("p")
    async with retirements() as (owner, retiring):
        await owner.be()
        over = retiring.begin(slow)
        with anyio.move_on_after(0.05) as impatient:
            await over.wait()
        assert impatient.cancelled_caught
        assert len(retiring) == 1
        slow.may_close.set()
        with anyio.fail_after(5):
            await retiring.finish([])
        assert slow.is_retired
        assert len(retiring) == 0


async def test_without_an_owner_a_connection_waits_for_the_end() -> None:
    slow = SlowConnection("p")
    slow.may_close.set()
    async with retirements() as (_, retiring):
        with anyio.fail_after(5):
            await retiring.begin(slow).wait()
        assert not slow.is_retired
        await retiring.finish([])
        assert slow.is_retired


async def test_one_that_raises_keeps_no_other_from_closing() -> None:
    broken, well = SlowConnection("broken", is_broken=True), SlowConnection("well")
    well.may_close.set()
    async with retirements() as (owner, retiring):
        await owner.be()
        with anyio.fail_after(5):
            await retiring.begin(broken).wait()
            await retiring.finish([broken, well])
        assert well.is_retired
        assert len(retiring) == 0
