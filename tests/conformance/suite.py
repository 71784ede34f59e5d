"""Running the official conformance suite against a daemon, and reading what it found. SPEC §status."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from tests.conformance.adapter import MACHINE_SECRET, SECRET
from tests.conformance.expected import RELEASES
from tests.support.daemon import Daemon
from tests.support.official_client import NODE, NPM

SOURCE = Path(__file__).parent
SECRETS = {SECRET: "pre-registered-secret", MACHINE_SECRET: "conformance-test-secret"}
"""What the scenarios' clients are registered with: fixed in the suite, and checked against each scenario's context."""
INSTALL_SECONDS = 300
RUN_SECONDS = 300
SCENARIO_SECONDS = 60
_TIMESTAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*$")


@dataclass(frozen=True)
class Found:
    """What the suite found in one scenario."""

    checks: list[dict[str, Any]]
    said: str
    """What the adapter wrote."""

    def having(self, *statuses: str) -> list[str]:
        """Return the checks with one of these statuses, one line each."""
        chosen = (check for check in self.checks if check["status"] in statuses)
        return [f"{each['id']}: {each.get('errorMessage') or each.get('description', '')}" for each in chosen]


@dataclass(frozen=True)
class Outcome:
    """One run of the suite."""

    exit_status: int
    output: str
    found: dict[str, Found]


def installed(cache: Path) -> Path:
    """Return the directory with both releases; the locked versions are installed where absent.

    Raises:
        RuntimeError: npm could not install them; its words are in the message.
    """
    locked = (SOURCE / "package-lock.json").read_bytes()
    ready = cache / hashlib.sha256(locked).hexdigest()[:16]
    if not ready.exists():
        fresh = Path(tempfile.mkdtemp(dir=cache))
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / name, fresh / name)
        _install(fresh)
        fresh.rename(ready)
    return ready


def _install(directory: Path) -> None:
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    command = [str(NODE), str(NPM), "ci", *options]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm ci ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


@dataclass(frozen=True)
class Suite:
    """One installed release and the daemon that it judges."""

    directory: Path
    release: str
    daemon: Daemon
    results: Path

    async def contract(self) -> Outcome:
        """Run the scored scenarios of the revision at once; only a failed check counts."""
        return await self._run("contract", "--requirements", "2026-07-28")

    async def strict(self) -> Outcome:
        """Run all scenarios of the revision at once; a warning counts too."""
        return await self._run("strict", "--suite", "all", "--spec-version", "2026-07-28")

    async def alone(self, scenario: str) -> Outcome:
        """Run one scenario; a warning counts too, and how the adapter ended."""
        options = ["--scenario", scenario, "--spec-version", "2026-07-28", "--force"]
        return await self._run(f"alone-{scenario.replace('/', '-')}", *options)

    async def _run(self, name: str, *options: str) -> Outcome:
        results = self.results / self.release / name
        program = self.directory / "node_modules" / RELEASES[self.release] / "dist" / "index.js"
        # Without exec a timeout would end the shell and leave the adapter.
        adapter = f"exec {sys.executable} {SOURCE / 'adapter.py'}"
        limit = ["--timeout", str(SCENARIO_SECONDS * 1000), "-o", str(results)]
        command = [str(NODE), str(program), "client", *options, "--command", adapter, *limit]
        address = {"CONFORMANCE_DAEMON": self.daemon.url, "CONFORMANCE_TOKEN": self.daemon.token}
        with anyio.fail_after(RUN_SECONDS):
            done = await anyio.run_process(
                command,
                check=False,
                stderr=subprocess.STDOUT,
                env={**os.environ, **SECRETS, **address},
            )
        output = done.stdout.decode(errors="replace")
        return Outcome(done.returncode, output, dict(_found(results)))


def _found(results: Path) -> Iterator[tuple[str, Found]]:
    for file in sorted(results.rglob("checks.json")):
        scenario = _TIMESTAMP.sub("", str(file.parent.relative_to(results)))
        said = "".join((file.parent / name).read_text() for name in ("stdout.txt", "stderr.txt"))
        yield scenario, Found(json.loads(file.read_text()), said)
