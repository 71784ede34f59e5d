"""SIGKILL exactly before and exactly after a write, between it and the publication. SPEC §lifecycle.

The journeys kill a whole daemon after delays; here a process runs the real middle and its store kills it at the step.
"""

import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from app.core.attachments import Attached, Detached
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
