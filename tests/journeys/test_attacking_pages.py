"""No web page drives the daemon, not even an open one: tried in a real Chromium, where there is one. SPEC §security."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tests.support import chromium
from tests.support.daemon import Daemon
from tests.support.loopback import served

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(chromium.found() is None, reason="no Chromium is installed"),
]

REBOUND = "rebound.example"
PAGE = (Path(__file__).parent.parent / "support" / "attacking_page.html").read_text()


async def _told(daemon: Daemon, profile: Path) -> tuple[dict[str, Any], set[str]]:
    """Return what a page on another port saw of its attacks, and the workspaces that came of them."""
    told, is_told = dict[str, Any](), anyio.Event()
    rebound = daemon.url.replace("127.0.0.1", REBOUND)
    page = PAGE.replace("DAEMON", json.dumps(daemon.url)).replace("REBOUND", json.dumps(rebound), 1)

    async def show(_request: Request) -> Response:
        return HTMLResponse(page)

    async def tell(request: Request) -> Response:
        told.update(await request.json())
        is_told.set()
        return Response()

    app = Starlette(routes=[Route("/", show), Route("/told", tell, methods=["POST"])])
    executable = chromium.found()
    assert executable is not None
    async with served(app) as site:
        with chromium.showing(executable, site.url, profile, rebound=REBOUND), anyio.fail_after(60):
            await is_told.wait()
    async with daemon.client() as client:
        return told, set((await client.get("/v1/workspaces")).json()["workspaces"])


@pytest.fixture
async def open_daemon(new_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon that takes everybody who reaches it for the operator."""
    daemon = new_daemon({"PLURNK_TOKEN": "none"})
    return await daemon.start()


@pytest.mark.spec("security")
async def test_no_page_of_another_origin_drives_an_open_daemon(open_daemon: Daemon, tmp_path: Path) -> None:
    told, workspaces = await _told(open_daemon, tmp_path / "profile")
    assert workspaces == set()
    assert len(told) == 20
    assert told["no-cors"] == "opaque 0", "the page does not reach the daemon"
    opaque = {"no-cors", "get-no-cors", "agui"}  # sent, and refused by an answer that the page cannot read
    unseen = {
        "beacon",
        "beacon-json",
        "frame",
        "form",
        "form-text",
        "rebound-frame",
    }  # a frame loads its refusal
    seen = {name: what for name, what in told.items() if what not in {"refused", "nothing"}}
    assert seen.keys() <= opaque | unseen
    assert {seen.get(name, "opaque 0") for name in opaque} == {"opaque 0"}
