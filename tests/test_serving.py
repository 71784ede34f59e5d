"""``serve`` as a process: how it starts, refuses to, and ends."""

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import anyio
import httpx2
import pytest

from tests.support.daemon import Daemon, DaemonEndedError
from tests.support.databases import contents
from tests.support.peers.programs import scripted_definition, stdio_definition
from tests.support.processes import children, command_lines, is_alive, peers_of, until_gone

SCRIPTED_STDIO = Path(__file__).parent / "support" / "scripted_stdio.py"


@pytest.mark.spec("state", "security")
async def test_a_start_says_where_it_is_and_how_to_get_the_token_never_the_token(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        assert f"plurnk-mcpd listens on {daemon.url}\n" in daemon.log
        assert 'export PLURNK_TOKEN="$(plurnk-mcpd token)"\n' in daemon.log
        assert daemon.token not in daemon.log
    finally:
        assert await daemon.stop() == 0
    assert not (daemon.home / "daemon.json").exists()


@pytest.mark.spec("state")
async def test_a_second_daemon_on_the_same_home_is_refused(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        second = daemon.spawn()
        assert await anyio.to_thread.run_sync(second.wait) == 2
        assert "home" in daemon.log
        async with daemon.client() as client:
            assert (await client.get("/readyz")).status_code == 200
    finally:
        await daemon.stop()


@pytest.mark.spec("settings")
async def test_a_port_that_is_taken_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        daemon = Daemon(tmp_path, {"PLURNK_PORT": str(taken.getsockname()[1])})
        with pytest.raises(DaemonEndedError) as ended:
            await daemon.start()
    assert ended.value.status == 2
    assert "PLURNK_PORT" in ended.value.log
    assert "Traceback" not in ended.value.log


def _may_mount() -> bool:
    """Whether a process may have mounts of its own here: Linux, and not every container."""
    return subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.spec("state")
@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("unshare") is None or not _may_mount(), reason="no mounts of one's own")
async def test_a_place_that_cannot_be_written_is_refused_in_a_sentence_and_left_untouched(
    tmp_path: Path,
) -> None:
    places = [tmp_path / "home", tmp_path / "database"]
    places[1].mkdir()
    daemon = Daemon(tmp_path, {"PLURNK_DATABASE_URL": f"sqlite+aiosqlite:///{places[1] / 'plurnk.db'}"})
    serve = (await daemon.start()).program
    assert await daemon.stop() == 0
    for place in places:
        before = contents(place / "any")
        read_only = f'mount --bind {place} {place} && mount -o remount,ro,bind {place} && exec "$0" "$@"'
        daemon.program = ("unshare", "-rm", "sh", "-c", read_only, *serve)
        with pytest.raises(DaemonEndedError) as ended:
            await daemon.start()
        told = ended.value.log
        assert ended.value.status == 2
        assert str(place) in told
        assert "Read-only file system" in told
        assert "Traceback" not in told
        assert contents(place / "any") == before
        daemon.log_file.unlink()


@pytest.mark.spec("observe")
async def test_traces_that_cannot_be_exported_are_refused_in_a_sentence(tmp_path: Path) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    daemon = Daemon(tmp_path, {**endpoint, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1000000"})
    with pytest.raises(DaemonEndedError) as ended:
        await daemon.start()
    assert ended.value.status == 2
    assert "OTEL_*" in ended.value.log
    assert "Traceback" not in ended.value.log


@pytest.mark.spec("shutdown")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_signal_ends_the_daemon_and_its_children(tmp_path: Path, number: signal.Signals) -> None:
    daemon = Daemon(tmp_path)
    await daemon.start()
    await daemon.attach("w", scripted_definition("p"))
    peers = set(peers_of(daemon.pid))
    assert peers
    assert await daemon.stop(number) == 0
    await until_gone(peers)


@pytest.mark.spec("shutdown")
async def test_a_second_signal_ends_it_at_once_and_leaves_no_child(tmp_path: Path) -> None:
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    script = {"deaf": ["EOF", "TERM"], "on": {"server/discover": [{"result": discovered}]}}
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        await daemon.attach("w", stdio_definition("p", SCRIPTED_STDIO, json.dumps(script)))
        family, process = children(daemon.pid), daemon.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(10):
            while "shutting-down" not in daemon.log:
                await anyio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert await daemon.ended() == 128 + signal.SIGTERM
        await until_gone(family)
    finally:
        daemon.close()


@pytest.mark.spec("shutdown")
async def test_a_shutdown_beyond_its_time_leaves_the_rest_to_the_reaper_and_exits_0(tmp_path: Path) -> None:
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    # A child that is deaf to all but SIGKILL takes longer to close than this shutdown may last.
    script = {"deaf": ["EOF", "TERM"], "on": {"server/discover": [{"result": discovered}]}}
    daemon = Daemon(tmp_path, {"PLURNK_SHUTDOWN_TIMEOUT": "1500"})
    await daemon.start()
    try:
        await daemon.attach("w", stdio_definition("p", SCRIPTED_STDIO, json.dumps(script)))
        family = children(daemon.pid)
        assert await daemon.stop() == 0
        assert "shutdown-timeout" in daemon.log
        await until_gone(family)
    finally:
        daemon.close()


@pytest.mark.spec("connection")
async def test_what_outlived_daemon_and_reaper_is_ended_at_the_next_start(tmp_path: Path) -> None:
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    script = {"deaf": ["EOF"], "on": {"server/discover": [{"result": discovered}]}}
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        await daemon.attach("w", stdio_definition("p", SCRIPTED_STDIO, json.dumps(script)))
        family = command_lines(children(daemon.pid))
        (reaper,) = (pid for pid, line in family.items() if "reaper_process" in line)
        (survivor,) = (pid for pid, line in family.items() if SCRIPTED_STDIO.name in line)
        os.kill(daemon.pid, signal.SIGSTOP)  # it would replace the reaper
        os.kill(reaper, signal.SIGKILL)
        assert await daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        assert is_alive(survivor)
        await daemon.start()
        await until_gone({survivor})
    finally:
        daemon.close()


@pytest.mark.spec("settings", "state")
async def test_the_database_is_where_the_setting_says(tmp_path: Path) -> None:
    database = tmp_path / "elsewhere.db"
    daemon = Daemon(tmp_path, {"PLURNK_DATABASE_URL": f"sqlite+aiosqlite:///{database}"})
    await daemon.start()
    try:
        await daemon.attach("w", scripted_definition("p"))
    finally:
        assert await daemon.stop() == 0
    assert database.exists()
    assert not (daemon.home / "plurnk.db").exists()


@pytest.mark.spec("agui")
async def test_health_needs_no_token_and_readiness_is_true_once_the_port_is_open(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        async with httpx2.AsyncClient(base_url=daemon.url, trust_env=False) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/v1/workspaces")).status_code == 401
    finally:
        await daemon.stop()
