"""SIGKILL of the daemon at the steps of a commit: whole before or whole after. SPEC §lifecycle."""

import signal
from collections.abc import Callable

import anyio
import httpx2
import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition
from tests.support.processes import peers_of, until_gone
from tests.support.standing import stored

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

# After the last list was answered: policy, the write, its fsync, the publication and the answer follow.
DELAYS_US = (0, 300, 700, 1200, 2000, 3500, 6000, 15000)


@pytest.mark.spec("lifecycle", "state", "connection")
async def test_a_daemon_killed_during_a_commit_has_the_whole_change_or_none_of_it(
    new_daemon: Callable[..., Daemon],
) -> None:
    daemon = await new_daemon({}).start()
    await daemon.attach("steady", scripted_definition("kept", read=["echo"]))
    expected: set[str] = set()
    for number, delay in enumerate(DELAYS_US):
        name, children = f"server-{number}", set(peers_of(daemon.pid))
        victim = {"VICTIM": str(daemon.pid), "KILL_AFTER_US": str(delay)}
        answered = await _attach_and_die(daemon, scripted_definition(name, "kills", env=victim))
        children |= set(peers_of(daemon.pid))
        await until_gone(children)

        await daemon.start()

        names = set(await daemon.servers("changing"))
        assert names - {name} == expected
        assert name in names or not answered, "an answered attach is durable"
        expected = names
        assert {row[1] for row in stored(daemon)["server_attachments"] if row[0] == "changing"} == expected
        assert await daemon.call_text("steady", "kept", "echo", text="whole") == "whole"


async def _attach_and_die(daemon: Daemon, definition: dict[str, object]) -> bool:
    """Return whether the attach was answered before the daemon was killed."""
    answered = False
    with anyio.fail_after(30):
        try:
            response = await daemon.post("changing", "workspace.mcp.attach", server=definition)
            answered = response.status_code in {200, 201}
        except httpx2.TransportError:
            pass
        status = await daemon.ended()
    assert status == -signal.SIGKILL
    return answered


@pytest.mark.spec("connection")
async def test_no_child_survives_the_daemon_that_was_killed(new_daemon: Callable[..., Daemon]) -> None:
    daemon = await new_daemon({}).start()
    for name in ("one", "two"):
        await daemon.attach("w", scripted_definition(name))
    # A grandchild in the server's group: it does not die with the daemon by itself.
    command = 'sleep 600 & exec "$0" "$@"'
    definition = scripted_definition("three")
    args = ["-c", command, definition["command"], *definition["args"]]
    await daemon.attach("w", {**definition, "command": "sh", "args": args})
    before = set(peers_of(daemon.pid))
    assert len(before) == 3
    assert await daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    await until_gone(before)
    await daemon.start()
    assert {server["state"] for server in (await daemon.servers("w")).values()} == {"connected"}
    assert not before & set(peers_of(daemon.pid))


@pytest.mark.spec("shutdown")
async def test_a_second_signal_ends_at_once_and_leaves_no_child(new_daemon: Callable[..., Daemon]) -> None:
    daemon = await new_daemon({}).start()
    await daemon.attach("w", scripted_definition("one", read=["hold"]))
    children = set(peers_of(daemon.pid))
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    await daemon.stop(signal.SIGINT)
    await until_gone(children)
