"""What a daemon holds right now, as the doors know it."""

import pytest

from app.doors.gauges import gauges
from tests.support.doors_house import call, doors_house

pytestmark = pytest.mark.spec("observe")


async def test_the_gauges_tell_what_is_held_at_the_moment() -> None:
    async with doors_house() as doors:
        host = doors.app.serves

        def read() -> dict[str, int]:
            return {gauge.name: gauge.read()[()] for gauge in gauges(host, doors.streams)}

        nothing = {"plurnk_open_operations": 0, "plurnk_open_streams": 0, "plurnk_pending_authorizations": 0}
        assert read() == {**nothing, "plurnk_workspaces": 1}
        await doors.act(call("deploy"), workspace="w")
        await doors.act({"kind": "workspace.mcp.list"}, workspace="v")
        with doors.streams.stream():
            held = {"plurnk_workspaces": 2, "plurnk_open_operations": 1, "plurnk_open_streams": 1}
            assert read() == {**nothing, **held}
