"""The demo as a newcomer runs it, and interrupted half-way. SPEC §cli, §shutdown."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import children, command_lines, is_alive


def start(tmp_path: Path) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "COLUMNS": "100",
        "PLURNK_PORT": "1",
        "PLURNK_TOKEN": "x",
    }
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "app", "demo"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.spec("cli")
def test_a_whole_round_is_shown_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('another project')")
    with start(tmp_path) as demo:
        out, err = demo.communicate(timeout=55)
    assert (demo.returncode, err) == (0, "")
    headings = re.findall(r"^(\d)\. ", out, flags=re.MULTILINE)
    assert headings == ["1", "2", "3", "4", "5", "6", "7"]
    assert out.count("attached workshop (stdio") == out.count("attached library (http") == 1
    table = [line.split()[:4] for line in out.splitlines() if " connected " in line]
    assert (
        table
        == [["library", "connected", "workspace", "http"], ["workshop", "connected", "workspace", "stdio"]]
        * 2
    )
    assert "proposal accepted: Call tool 'build' of server 'workshop'?" in out
    assert "One table of walnut, ready to carry home." in out
    assert "books: 4, shelves: 6" in out
    assert list(tmp_path.iterdir()) == [tmp_path / "app"]


@pytest.mark.spec("cli", "shutdown")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("moment", ["1. ", "4. "], ids=["starting", "calling"])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    with start(tmp_path) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith(moment):
                break
        family = children(demo.pid)
        demo.send_signal(number)
        demo.communicate(timeout=40)
    assert demo.returncode == 130
    left = {pid for pid in family if is_alive(pid)}
    assert command_lines(left) == {}
    assert list(tmp_path.iterdir()) == []
