"""SIGKILL at each await of a commit, and exactly before and after its write. SPEC §lifecycle.

The journeys kill a whole daemon after delays; here a process runs the real middle and is killed at the step.
"""

import os
import shutil
import signal
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from app.core.attachments import Attached, Detached
from app.workspaces import change
from tests.support.cancelled_at import CancelledAt
from tests.support.databases import in_child, query
from tests.support.peers.programs import SCRIPTED, http_definition, http_peer
from tests.support.scripted_http import ScriptedHttp, scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = [pytest.mark.spec("lifecycle", "state"), pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[2]
VICTIM = """
import os, signal, sys
from pathlib import Path
import anyio, orjson
from tests.support.workspace_house import workspace_house

async def main() -> None:
    directory, step, defaults, actions = sys.argv[1], sys.argv[2], *map(orjson.loads, sys.argv[3:])
    async with workspace_house(Path(directory), defaults=defaults) as house:
        *before, (kind, members) = actions
        for done, its in before:
            await house.act(done, **its)
        apply = house.store.apply

        async def dies(*entry):
            if step == "after":
                await apply(*entry)
            os.kill(os.getpid(), signal.SIGKILL)

        house.store.apply = dies
        await house.act(kind, **members)

anyio.run(main)
"""


def actions(peer: ScriptedHttp, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what is done in peace, and then the change that the process dies of."""
    last: dict[str, dict[str, Any]] = {
        "attach": {"server": http(peer)},
        "replace": {"server": http(peer, "old", tools=[])},
        "detach": {"name": "d"},
        "restore": {"name": "e"},
    }
    return [("attach", {"server": http(peer, "old")}), ("detach", {"name": "e"}), (kind, last[kind])]


@pytest.mark.parametrize("step", ["before", "after"])
@pytest.mark.parametrize("kind", ["attach", "replace", "detach", "restore"])
async def test_after_power_loss_at_the_write_what_was_written_is_the_truth(
    tmp_path: Path, kind: str, step: str
) -> None:
    async with scripted_http() as peer:
        defaults = {"d": http(peer, "d"), "e": http(peer, "e")}
        arguments = [orjson.dumps(value).decode() for value in (defaults, actions(peer, kind))]
        command = [sys.executable, "-c", VICTIM, str(tmp_path), step, *arguments]
        with anyio.fail_after(60):
            died = await anyio.run_process(command, cwd=ROOT, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        expected: dict[str, Attached | Detached] = {"e": Detached(), "old": _attached(http(peer, "old"))}
        if step == "after":
            match kind:
                case "attach":
                    expected["p"] = _attached(http(peer))
                case "replace":
                    expected["old"] = _attached(http(peer, "old", tools=[]))
                case "detach":
                    expected["d"] = Detached()
                case _:
                    del expected["e"]
        async with workspace_house(tmp_path, defaults=defaults) as house:
            assert await house.rows() == expected
            hidden = {name for name, record in expected.items() if isinstance(record, Detached)}
            listed = await house.listed()
            assert listed.keys() == {*defaults, *expected} - hidden
            assert {server["state"] for server in listed.values()} == {"connected"}
            assert len(house.connector.unretired()) == len(listed)


def _attached(definition: dict[str, Any]) -> Attached:
    return Attached(orjson.dumps(definition).decode())


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """A server that outlives the processes that are killed."""
    with http_peer(SCRIPTED, "good") as url:
        yield url


@pytest.mark.parametrize("kind", ["attach", "replace", "detach"])
def test_killed_at_any_await_of_its_commit_a_change_is_whole_or_not_there(
    tmp_path: Path, url: str, kind: str
) -> None:
    origin, seen = tmp_path / "origin", list[set[tuple[str, str]]]()
    origin.mkdir()
    definition = http_definition("old", url)
    members: dict[str, dict[str, Any]] = {
        "attach": {"server": {**definition, "name": "new"}},
        "replace": {"server": {**definition, "tools": []}},
        "detach": {"name": "old"},
    }
    assert in_child(lambda: _make(origin, "attach", {"server": definition}, None)) == 0
    before, status = _attached_in(origin), -signal.SIGKILL
    while status != 0:
        assert status == -signal.SIGKILL
        step, directory = len(seen), tmp_path / str(len(seen))
        shutil.copytree(origin, directory)
        status = in_child(partial(_make, directory, kind, members[kind], step))
        seen.append(_attached_in(directory))
    after = seen[-1]
    assert after != before
    # It turns once, and some were killed on either side.
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)
    assert min(seen.count(before), seen.count(after)) > 1


def _make(directory: Path, kind: str, members: dict[str, Any], step: int | None) -> None:
    """Make the change, and die at the end of this await of its commit, where one is given and there are so many."""
    run = change._Commit.run

    async def dies(self: Any) -> None:
        assert step is not None
        await CancelledAt(run(self), step, partial(os.kill, os.getpid(), signal.SIGKILL), is_late=True)

    async def make() -> None:
        async with workspace_house(directory) as house:
            await house.act(kind, **members)

    if step is not None:
        change._Commit.run = dies
    anyio.run(make)


def _attached_in(directory: Path) -> set[tuple[str, str]]:
    """Return what another process finds in a sound database."""
    database = directory / "plurnk.db"
    assert query(database, "PRAGMA integrity_check") == [("ok",)]
    return set(query(database, "SELECT name, definition FROM server_attachments"))
