"""What a client of a soak does to the servers of a workspace, sign-ins included. SPEC §lifecycle, §oauth."""

from tests.soak.doors import act
from tests.soak.model import KINDS, Change, Json, Workspace
from tests.soak.peers import NAMES
from tests.soak.world import GONE, World
from tests.support.browser import callback_of

FOREIGN = "http://127.0.0.1:7777/callback?code=c&state=foreign"


async def change(world: World, workspace: Workspace) -> None:
    """One change, an attach more often than another, and a sign-in where it asks for one."""
    rng = world.rng
    kind, name = rng.choice(("attach", "attach", *KINDS)), rng.choice(NAMES)
    is_sent = kind in {"attach", "replace"}
    await perform(
        world, workspace, Change(kind, name, world.peers.definition(name, rng) if is_sent else None)
    )


async def perform(world: World, workspace: Workspace, asked: Change) -> str:
    """Make the change, and return what it came to; the reference follows.

    Raises:
        AssertionError: it ended in something that the reference does not allow.
    """
    members = {"name": asked.name} if asked.definition is None else {"server": asked.definition}
    life = world.life
    try:
        answer = await act(world, workspace.name, asked.kind, **members)
        code = _code(answer)
        if code == "pending" and world.rng.random() < 0.8:
            code = await _sign_in(world, workspace, answer)
        elif code == "pending":
            workspace.is_pending = True
    except GONE:
        await _learn(world, workspace, asked, life)
        return "gone"
    world.counts[f"change {code}"] += 1
    assert code in workspace.may_say(asked) | {"oauth-not-pending"}, (workspace, asked, answer)
    if code == "shutting-down":
        await _learn(world, workspace, asked, life)
    elif code == "ok":
        workspace.entries = workspace.after(asked)
        workspace.is_pending = workspace.is_pending and asked.name != "guarded"
    return code


def _code(answer: Json) -> str:
    if "authorization" in answer:
        return "pending"
    return "ok" if answer.get("status") in {200, 201} else str(answer["code"])


async def _sign_in(world: World, workspace: Workspace, answer: Json) -> str:
    """The person signs in, sometimes with a callback of somebody else first."""
    callback = await callback_of(answer["authorization"]["url"])
    if world.rng.random() < 0.2:
        refused = await act(world, workspace.name, "oauth.complete", name="guarded", callbackUrl=FOREIGN)
        assert refused["code"] in {"oauth-callback-invalid", "server-busy", "shutting-down"}, refused
    workspace.is_pending = True
    return _code(await act(world, workspace.name, "oauth.complete", name="guarded", callbackUrl=callback))


async def _learn(world: World, workspace: Workspace, asked: Change, life: int) -> None:
    """Wait for the next life and take what it has as true: the change happened as a whole or not at all."""
    await world.next_life(life)
    workspace.adopt(world.rows().get(workspace.name, {}), asked)
    world.counts["change unseen"] += 1


async def look(world: World, workspace: Workspace) -> None:
    """What is listed is what is effective."""
    listed = await act(world, workspace.name, "list")
    if listed.get("code") == "shutting-down":
        return
    assert {each["name"]: each["source"] for each in listed["servers"]} == workspace.effective, workspace
    assert listed["detached"] == workspace.tombstones
    if workspace.life == world.life:
        assert workspace.is_pending or not [each for each in listed["pending"] if "attach" in each["action"]]
