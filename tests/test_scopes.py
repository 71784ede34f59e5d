"""Cancel scopes that are made in every call."""

import anyio
import anyio.lowlevel

from app.scopes import cancel_scope


async def test_a_scope_is_one_of_anyio() -> None:
    assert type(cancel_scope()) is type(anyio.CancelScope())


async def test_it_ends_its_block_and_nothing_else() -> None:
    with cancel_scope() as outer:
        with cancel_scope() as inner:
            inner.cancel()
            await anyio.sleep_forever()
        assert inner.cancelled_caught
        with anyio.CancelScope(shield=True):
            outer.cancel()
            await anyio.lowlevel.checkpoint()
        await anyio.sleep_forever()
    assert outer.cancelled_caught


def test_two_event_loops_have_each_their_own() -> None:
    async def kept() -> bool:
        with cancel_scope() as scope:
            scope.cancel()
            await anyio.sleep_forever()
        return scope.cancelled_caught

    assert anyio.run(kept)
    assert anyio.run(kept)
