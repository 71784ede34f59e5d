"""Published servers, each in its own environment: the modern attach, the legacy do not. SPEC §revision."""

import functools
import http.server
import json
import subprocess
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.support.compatibility import NONE, PAGE, Attached, Refused, row, with_rows
from tests.support.daemon import Daemon, running_daemon
from tests.support.processes import children, command_lines, until_gone
from tests.support.published import MODERN, REFUSED, Call, Environments, Peer, running
from tests.support.standing import stored

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for the module's daemon."""
    return "asyncio"


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One running daemon for all of them."""
    async with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    """Where the servers are installed."""
    return Environments(tmp_path_factory.mktemp("environments"))


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    """The rows of docs/compatibility.md, as this run finds them."""
    return {}


@pytest.fixture
def page(tmp_path: Path) -> Generator[str]:
    """The address of a page on this machine, for a server that fetches pages."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        @override
        def log_message(self, format: str, *args: object) -> None:
            """Write nothing to the terminal."""

    (tmp_path / "page.html").write_text("<html><body><p>A page of this run</p></body></html>")
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/page.html"
        server.shutdown()
        thread.join()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, for a server that reads repositories."""
    directory = tmp_path / "repository"
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    commit = ["commit", "--quiet", "--allow-empty", "--message", "The first commit"]
    subprocess.run(["git", "-C", str(directory), *who, *commit], check=True)
    return directory


async def answer(daemon: Daemon, peer: Peer, call: Call, put: functools.partial[Any]) -> None:
    """Ask the server, and see the answer that is expected."""
    params = put(call.params)
    if call.kind != "workspace.mcp.read":
        params["server"] = peer.name
    response = await daemon.post("w", call.kind, **params)
    assert response.status_code == 200, response.text
    assert call.expected in response.text
    assert response.json().get("isError") in (None, False), response.text


def filled(value: Any, *, places: dict[str, str]) -> Any:
    """Return the JSON value with the run's places put in."""
    text = json.dumps(value)
    for name, place in places.items():
        text = text.replace(name, place)
    return json.loads(text)


@pytest.mark.spec("revision", "prepare", "addresses")
@pytest.mark.parametrize("peer", MODERN, ids=str)
async def test_a_modern_server_does_all_it_has_and_comes_back_after_a_restart(
    daemon: Daemon,
    environments: Environments,
    seen: dict[str, list[str]],
    peer: Peer,
    page: str,
    repository: Path,
) -> None:
    put = functools.partial(filled, places={"$DIR": str(repository.parent), "$PAGE": page})
    with running(peer, put(environments.command(peer))) as definition:
        reads = [call.params["tool"] for call in peer.requests if "tool" in call.params]
        server = await daemon.attach("w", {**definition, "read": reads})
        try:
            assert (server["state"], server["protocolVersion"]) == ("connected", "2026-07-28")
            assert set(peer.tools) <= set(server["tools"])
            assert server["withheld"] == []
            for call in peer.requests:
                await answer(daemon, peer, call, put)
            assert await daemon.stop() == 0
            await daemon.start()
            (again,) = (await daemon.servers("w")).values()
            assert (again["state"], again["tools"]) == ("connected", server["tools"])
            for call in peer.requests:
                await answer(daemon, peer, call, put)
        finally:
            assert (await daemon.act("w", "workspace.mcp.detach", name=peer.name))["detached"] is True
    assert await daemon.servers("w") == {}
    identity = f"{server['server']['name']} {server['server']['version']}" if server["server"] else NONE
    kinds = frozenset(call.kind for call in peer.requests)
    seen[str(peer)] = row(peer, Attached(identity, len(server["tools"]), kinds))


@pytest.mark.spec("revision", "problems")
@pytest.mark.parametrize("peer", REFUSED, ids=str)
async def test_a_legacy_server_is_refused_for_good_and_leaves_nothing(
    daemon: Daemon, environments: Environments, seen: dict[str, list[str]], peer: Peer, tmp_path: Path
) -> None:
    with running(peer, environments.command(peer)) as definition:
        rows, before = stored(daemon), children(daemon.pid)
        response = await daemon.post("w", "workspace.mcp.attach", server=definition)
        problem = response.json()
        assert response.status_code == 502, problem
        transport = "stdio" if peer.over == "stdio" else "http"
        facts = ("code", "retryable", "server", "transport", "requiredRevision", "requiredMethod")
        assert [problem[name] for name in facts] == [
            *("protocol-revision-unsupported", False, peer.name, transport),
            *("2026-07-28", "server/discover"),
        ]
        assert tuple(problem.get("supportedRevisions", ())) == peer.revisions
        _, _, rest = problem["detail"].partition("through server/discover (")
        answered, closing, advice = rest.partition(").")
        assert (answered, closing) == (peer.answered, ").")
        assert ("install" if transport == "stdio" else "ask its owner") in advice
        program = str(definition.get("args", [tmp_path])[0])
        left = {pid for pid, line in command_lines(children(daemon.pid) - before).items() if program in line}
        await until_gone(left)
        assert stored(daemon) == rows
        assert await daemon.servers("w") == {}
    seen[str(peer)] = row(peer, Refused(answered))


def test_the_page_in_the_documents_is_what_this_run_saw(
    seen: dict[str, list[str]], request: pytest.FixtureRequest
) -> None:
    missing = [str(peer) for peer in (*MODERN, *REFUSED) if str(peer) not in seen]
    if missing:
        pytest.skip(f"not the whole wall ran: {', '.join(missing)}")
    text = PAGE.read_text()
    attached, refused = ([seen[str(peer)] for peer in peers] for peers in (MODERN, REFUSED))
    fresh = with_rows(text, attached, refused)
    if request.config.getoption("--rewrite"):
        PAGE.write_text(fresh)
    else:
        assert text == fresh, "make compatibility rewrites it"
