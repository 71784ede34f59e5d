"""A change that fails leaves everything as it was, whatever way it fails. SPEC §lifecycle, §prepare."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input, running_daemon
from tests.support.peers.programs import SCRIPTED, http_definition, http_peer, scripted_definition
from tests.support.processes import peers_of
from tests.support.standing import standing, until_it_stands

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

UNAVAILABLE = (502, "server-unavailable")
UNSUPPORTED = (502, "protocol-revision-unsupported")
CATALOG = (502, "catalog-invalid")
WAYS = [
    ("silent", UNAVAILABLE),
    ("legacy", UNSUPPORTED),
    ("old", UNSUPPORTED),
    ("duplicate", CATALOG),
    ("endless", CATALOG),
    ("dies", UNAVAILABLE),
]


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """A daemon that does not wait long for the silent, and lists no more than fifty entries."""
    settings = {"PLURNK_MCP_CONNECT_TIMEOUT": "3000", "PLURNK_MAX_CATALOG_ENTRIES": "50"}
    async with running_daemon(tmp_path_factory.mktemp("daemon"), settings) as daemon:
        yield daemon


@pytest.fixture
def way(tmp_path: Path) -> Path:
    """The file that says how the peers of ``changeable_url`` behave."""
    file = tmp_path / "way"
    file.write_text("good")
    return file


@pytest.fixture
def changeable_url(way: Path) -> Generator[str]:
    """An HTTP peer that behaves as the file says."""
    with http_peer(SCRIPTED, f"@{way}") as url:
        yield url


async def refused(daemon: Daemon, workspace: str, kind: str, **params: Any) -> tuple[int, str]:
    """Return status and code of the Problem that a change ends in."""
    response = await daemon.post(workspace, f"workspace.mcp.{kind}", **params)
    return response.status_code, response.json().get("code", response.text)


def bad_definition(name: str, transport: str, way: str, url: str) -> dict[str, Any]:
    return scripted_definition(name, way) if transport == "stdio" else http_definition(name, url)


@pytest.mark.spec("lifecycle", "prepare", "revision")
@pytest.mark.parametrize(
    "transport, behaviour, problem",
    # A peer over HTTP that dies takes its address with it: another test has that.
    [
        (transport, *way)
        for transport in ("stdio", "http")
        for way in WAYS
        if (transport, way[0]) != ("http", "dies")
    ],
)
async def test_a_failed_attach_and_a_failed_replace_change_nothing(
    daemon: Daemon,
    workspace: str,
    way: Path,
    changeable_url: str,
    transport: str,
    behaviour: str,
    problem: tuple[int, str],
) -> None:
    await daemon.attach(workspace, scripted_definition("kept", read=["process"]))
    # The pool has its one idle socket to this peer before the change, so that none may be added by it.
    await daemon.attach(workspace, http_definition("warm", changeable_url))
    pid = await daemon.call_text(workspace, "kept", "process")
    before = await standing(daemon, workspace, changeable_url)
    await anyio.Path(way).write_text(behaviour)
    new = bad_definition("new", transport, behaviour, changeable_url)
    kept = bad_definition("kept", transport, behaviour, changeable_url)
    assert await refused(daemon, workspace, "attach", server=new) == problem
    await until_it_stands(daemon, workspace, changeable_url, before)
    assert await refused(daemon, workspace, "replace", server=kept) == problem
    await until_it_stands(daemon, workspace, changeable_url, before)
    assert await daemon.call_text(workspace, "kept", "process") == pid


@pytest.mark.spec("lifecycle")
@pytest.mark.parametrize("behaviour, problem", WAYS, ids=[way for way, _ in WAYS])
async def test_a_failed_reconnect_keeps_the_old_connection(
    daemon: Daemon, workspace: str, way: Path, scripted_url: str, behaviour: str, problem: tuple[int, str]
) -> None:
    definition = scripted_definition("kept", f"@{way}", read=["process"])
    await daemon.attach(workspace, definition)
    pid = await daemon.call_text(workspace, "kept", "process")
    before = await standing(daemon, workspace, scripted_url)
    await anyio.Path(way).write_text(behaviour)
    assert await refused(daemon, workspace, "reconnect", name="kept") == problem
    await anyio.Path(way).write_text("good")
    await until_it_stands(daemon, workspace, scripted_url, before)
    assert await daemon.call_text(workspace, "kept", "process") == pid


@pytest.mark.spec("lifecycle", "definition", "references")
@pytest.mark.parametrize(
    "change, problem",
    [
        ({"command": "/nonexistent/server"}, UNAVAILABLE),
        ({"args": []}, UNAVAILABLE),
        ({"tools": ["echo", "absent"]}, CATALOG),
        ({"tools": ["echo"], "read": ["hold"]}, (400, "definition-invalid")),
        ({"env": {"A": "${ABSENT_VARIABLE}"}}, (400, "reference-missing")),
        ({"env": {"A": "${PLURNK_TOKEN}"}}, (403, "reference-refused")),
        ({"unknown": 1}, (400, "definition-invalid")),
    ],
    ids=[
        "no executable",
        "ends at once",
        "absent tool",
        "read outside",
        "no reference",
        "refused reference",
        "unknown",
    ],
)
async def test_a_definition_that_cannot_work_changes_nothing(
    daemon: Daemon, workspace: str, scripted_url: str, change: dict[str, Any], problem: tuple[int, str]
) -> None:
    await daemon.attach(workspace, scripted_definition("kept", read=["process"]))
    before = await standing(daemon, workspace, scripted_url)
    if change == {"args": []}:
        change = {"args": ["-c", "pass"]}
    assert await refused(daemon, workspace, "attach", server=scripted_definition("new") | change) == problem
    assert await refused(daemon, workspace, "replace", server=scripted_definition("kept") | change) == problem
    await until_it_stands(daemon, workspace, scripted_url, before)


@pytest.mark.spec("lifecycle")
async def test_a_server_that_is_gone_changes_nothing(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    with http_peer(SCRIPTED, "good") as url:
        await daemon.attach(workspace, http_definition("kept", url))
    before = await standing(daemon, workspace, scripted_url)
    assert await refused(daemon, workspace, "attach", server=http_definition("new", url)) == UNAVAILABLE
    assert await refused(daemon, workspace, "replace", server=http_definition("kept", url)) == UNAVAILABLE
    assert await refused(daemon, workspace, "reconnect", name="kept") == UNAVAILABLE
    assert (await standing(daemon, workspace, scripted_url)).rows == before.rows


@pytest.mark.spec("lifecycle")
async def test_a_client_that_leaves_during_the_preparation_changes_nothing(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    await daemon.attach(workspace, scripted_definition("kept", read=["process"]))
    before = await standing(daemon, workspace, scripted_url)
    for kind, name in (("attach", "new"), ("replace", "kept")):
        action = {"kind": f"workspace.mcp.{kind}", "server": scripted_definition(name, "silent")}
        async with daemon.run(run_input(workspace, action)) as events:
            async for event in events:
                if event["type"] == "STEP_STARTED":
                    await _until_started(daemon, "silent")
                    break
        await until_it_stands(daemon, workspace, scripted_url, before)


async def _until_started(daemon: Daemon, word: str) -> None:
    with anyio.fail_after(10):
        while not any(word in line for line in peers_of(daemon.pid).values()):
            await anyio.sleep(0.02)


@pytest.mark.spec("lifecycle")
async def test_a_second_attach_of_a_name_is_refused_before_anything_starts(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    await daemon.attach(workspace, scripted_definition("kept"))
    before = await standing(daemon, workspace, scripted_url)
    again = await refused(daemon, workspace, "attach", server=scripted_definition("kept", "silent"))
    assert again == (409, "server-exists")
    for kind, params in (
        ("replace", {"server": scripted_definition("absent")}),
        ("detach", {"name": "absent"}),
        ("reconnect", {"name": "absent"}),
    ):
        assert await refused(daemon, workspace, kind, **params) == (404, "server-not-found")
    await until_it_stands(daemon, workspace, scripted_url, before)
