"""``cancel``: an operation that waits is ended, one that is not there is told. SPEC §cli, §calls."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import anyio
import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition

pytestmark = pytest.mark.spec("cli", "calls")
Run = Callable[..., CompletedProcess[str]]


def test_a_waiting_operation_is_cancelled(daemon: Daemon, plurnk: Run) -> None:
    anyio.run(daemon.attach, "default", scripted_definition("notes"))
    waiting = json.loads(plurnk("call", "notes", "echo", "text=x", "--json").stdout)["operation"]
    done = plurnk("cancel", waiting)
    assert (done.returncode, done.stdout) == (0, f"✓ cancelled {waiting} (workspace default)\n")
    absent = plurnk("cancel", "op-absent")
    assert (absent.returncode, absent.stdout) == (3, "")
    assert "Next: See what is open: plurnk-mcpd watch\n" in absent.stderr
