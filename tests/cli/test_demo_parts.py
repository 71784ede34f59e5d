"""The parts of the demo on their own: what they say where something fails. SPEC §cli."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx2
import pytest

from app.cli.demo_parts import DemoFailed, TemporaryDaemon, sample_over_http, terminated_like_interrupted
from tests.support.processes import children, command_lines


@pytest.mark.spec("cli")
def test_the_temporary_daemon_lives_twice_on_one_home_apart_from_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLURNK_TOKEN", "the-users-own-token")
    monkeypatch.setenv("PLURNK_MCP_BROKEN_ARGS", "[]")
    daemon = TemporaryDaemon(tmp_path)
    try:
        daemon.start()
        first = daemon.pid
        daemon.stop()
        daemon.start()
        assert daemon.pid != first
        daemon.stop()
    finally:
        daemon.discard()
    with pytest.raises(DemoFailed):
        _ = daemon.pid


def test_a_daemon_that_does_not_start_shows_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a directory")
    daemon = TemporaryDaemon(tmp_path)
    with pytest.raises(DemoFailed) as failed:
        daemon.start()
    assert "home" in str(failed.value)
    daemon.discard()


def test_the_sample_server_is_gone_after_its_block() -> None:
    with sample_over_http() as url, httpx2.Client(trust_env=False) as client:
        assert client.get(url).status_code == 405
    with httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.ConnectError):
        client.get(url)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_termination_is_an_interruption_inside_the_block_only(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


@contextmanager
def interrupted_when_a_child_was_forked() -> Generator[None]:
    """Send Ctrl-C to ourselves while the standard library still holds the new process alone."""

    def after(frame: FrameType, event: str, _value: object) -> None:
        if event == "return" and frame.f_code.co_name == "_execute_child":
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(after)
    try:
        yield
    finally:
        sys.setprofile(None)


def ours_that_are_left() -> list[str]:
    return [line for line in command_lines(children(os.getpid())).values() if " -m app" in line]


@pytest.mark.spec("cli", "shutdown")
def test_an_interruption_while_the_daemon_is_being_started_leaves_no_process(tmp_path: Path) -> None:
    daemon = TemporaryDaemon(tmp_path)
    with pytest.raises(KeyboardInterrupt), interrupted_when_a_child_was_forked():
        daemon.start()
    daemon.discard()
    assert ours_that_are_left() == []


@pytest.mark.spec("cli", "shutdown")
def test_an_interruption_while_the_sample_is_being_started_leaves_no_process() -> None:
    with pytest.raises(KeyboardInterrupt), interrupted_when_a_child_was_forked(), sample_over_http():
        pass
    assert ours_that_are_left() == []


class Swallowing:
    """Takes a Ctrl-C while it is collected, where Python ignores what is raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def swallow() -> None:
    Swallowing()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_a_destructor_swallowed_ends_the_block_at_its_end() -> None:
    with pytest.raises(KeyboardInterrupt) as ended, terminated_like_interrupted():
        swallow()
    assert ended.traceback[-1].name == "terminated_like_interrupted"
