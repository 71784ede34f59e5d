"""A call inside the daemon's process: everything but its doors, before a ``URL``. See ``blocks``."""

import gc
import os
import sys
import tempfile
from pathlib import Path

import anyio

from app import logs
from app.actions.perform import perform
from app.configuration import read
from app.core.masking import Mask
from app.core.principal import Principal
from app.home import Home
from app.main import running_daemon
from app.serving import YOUNG_MAX
from benchmarks.peers.blocks import run_blocks
from benchmarks.targets import CALL, TOKEN, WORKSPACE, Json, http_definition


async def _main(url: str, directory: Path) -> None:
    environment = {**os.environ, "PLURNK_HOME": str(directory / "home"), "PLURNK_TOKEN": TOKEN}
    environment |= {"PLURNK_MAX_WORKSPACE_OPERATIONS": "256"}
    configuration, mask = read(environment, directory), Mask()
    logs.configure(configuration.settings, mask.mask)
    with Home.open(configuration.settings.home, configuration.environment.values) as home:
        async with running_daemon(configuration, home, mask) as daemon:

            async def act(action: Json) -> None:
                await perform(daemon.host, Principal(), WORKSPACE, action, observe=lambda _: None)

            await act({"kind": "workspace.mcp.attach", "server": http_definition("s0", url)})
            gc.freeze()
            gc.set_threshold(YOUNG_MAX)  # as it serves
            await run_blocks(lambda: act(CALL))
            await daemon.end()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        anyio.run(_main, sys.argv[1], Path(scratch), backend_options={"use_uvloop": True})
