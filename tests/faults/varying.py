"""The steps of the own variants that no reported case has: any action by any door. SPEC §actions.

``perform`` is ``[workspace, action]``, or a method that ``whole_peer`` has an action for; ``by`` is ``agui`` (the
default) or ``rest``; ``as`` names it, and then it is not waited for. ``perform_all`` is a workspace.
"""

from collections.abc import Awaitable, Callable

from tests.faults.asking import run_action
from tests.faults.whole_peer import ACTIONS
from tests.faults.world import Json, Record, World, now_ms


async def performed(world: World, step: Json) -> None:
    """Do any action by the door that the step names."""
    workspace, told = step["perform"]
    action = ACTIONS[told] if isinstance(told, str) else told
    record = world.begin(action["kind"].removeprefix("workspace.mcp."), step.get("as", ""))
    do = _over_rest if step.get("by") == "rest" else run_action
    if "as" in step:
        world.group.start_soon(do, world, record, workspace, action)
    else:
        await do(world, record, workspace, action)


async def performed_all(world: World, step: Json) -> None:
    """Have the daemon send each method that a client can ask for, by both doors in turn."""
    for number, method in enumerate(ACTIONS):
        await performed(world, {"perform": [step["perform_all"], method], "by": ("agui", "rest")[number % 2]})


async def _over_rest(world: World, record: Record, workspace: str, action: Json) -> None:
    began = now_ms()
    response = await world.daemon.post(world.workspace(workspace), **action)
    record.milliseconds = now_ms() - began
    record.status, record.body = response.status_code, response.json()
    record.ok = response.status_code < 300
    record.is_settled = True


VARIES: dict[str, Callable[[World, Json], Awaitable[None]]] = {
    "perform": performed,
    "perform_all": performed_all,
}
