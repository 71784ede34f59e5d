"""A person signs in from the shell: callbacks on loopback and pasted, more scopes inside a call. SPEC §oauth, §cli."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from app.cli.definition import REDIRECT_URL
from tests.cli.conftest import CLIENT
from tests.support.browser import callback_of
from tests.support.daemon import Daemon, running_daemon
from tests.support.redirecting import free_port
from tests.support.signing_in import ENVIRONMENT, LIMIT, SigningIn, signing_in
from tests.support.terminal import Terminal, terminal

pytestmark = pytest.mark.spec("oauth", "cli")

BROWSER = f"""#!{sys.executable}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the clients' secret."""
    async with running_daemon(tmp_path_factory.mktemp("daemon"), ENVIRONMENT) as daemon:
        yield daemon


def shell(it: SigningIn, directory: Path, *words: str, browser: str = "") -> AbstractContextManager[Terminal]:
    """Run a command for this workspace in a terminal."""
    foreign = ("PLURNK_", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    ours = {"PLURNK_HOME": str(it.daemon.home), "PLURNK_TOKEN": it.daemon.token, "BROWSER": browser}
    return terminal([*CLIENT, *words, "-w", it.workspace], {**inherited, **ours}, directory)


def browser_in(directory: Path) -> str:
    """Return what ``BROWSER`` is for a browser that follows every redirect."""
    program = directory / "browser"
    program.write_text(BROWSER)
    program.chmod(0o700)
    return f"{program} %s"


async def test_the_browser_comes_back_to_the_shell(daemon: Daemon, workspace: str, tmp_path: Path) -> None:
    redirect = f"http://127.0.0.1:{free_port()}/callback"

    def person(it: SigningIn) -> None:
        definition = tmp_path / "p.json"
        definition.write_text(json.dumps(it.definition(redirectUrl=redirect)))
        with shell(it, tmp_path, "attach", "--file", str(definition)) as attaching:
            assert attaching.exit_status() == 6
            assert f"plurnk-mcpd authorize -w {it.workspace} p" in attaching.screen
        with shell(it, tmp_path, "authorize", "p", browser=browser_in(tmp_path)) as signing:
            assert signing.exit_status() == 0, signing.screen
            assert f"signed in to p (http, workspace {it.workspace})" in signing.screen
            assert "Sign in at 127.0.0.1:" in signing.screen
        with shell(it, tmp_path, "call", "p", "echo", "text=hello") as calling:
            assert calling.exit_status() == 0
            assert "hello" in calling.screen

    with anyio.fail_after(2 * LIMIT):
        async with signing_in(daemon, workspace) as it:
            await anyio.to_thread.run_sync(person, it)


async def test_a_callback_is_pasted_and_a_wrong_one_is_asked_for_again(
    daemon: Daemon, workspace: str, tmp_path: Path
) -> None:
    with anyio.fail_after(2 * LIMIT):
        async with signing_in(daemon, workspace) as it:
            answer = await it.attach(redirectUrl="https://app.example/callback")
            callback = await callback_of(answer["authorization"]["url"])

            def person() -> None:
                with shell(it, tmp_path, "authorize", "p", "--no-browser") as signing:
                    signing.wait_for("Paste the URL")
                    signing.type("https://app.example/callback?code=x&state=y\n")
                    signing.wait_for("oauth-callback-invalid")
                    signing.type(f"{callback}\n")
                    assert signing.exit_status() == 0, signing.screen
                    assert "signed in to p" in signing.screen

            await anyio.to_thread.run_sync(person)


async def test_one_line_attaches_a_server_where_a_person_signs_in(
    daemon: Daemon, workspace: str, tmp_path: Path
) -> None:
    with anyio.fail_after(2 * LIMIT):
        async with signing_in(daemon, workspace) as it:

            def person() -> None:
                with shell(it, tmp_path, "attach", "p", it.server.url, "--sign-in") as attaching:
                    assert attaching.exit_status() == 6
                    assert f"plurnk-mcpd authorize -w {it.workspace} p" in attaching.screen

            await anyio.to_thread.run_sync(person)
            (pending,) = (await it.listed())["pending"]
            callback = await callback_of(pending["authorization"]["url"])
            assert callback.startswith(f"{REDIRECT_URL}?")
            assert (await it.complete(callback))["status"] == 201


async def test_a_watcher_sees_where_to_sign_in(daemon: Daemon, workspace: str, tmp_path: Path) -> None:
    with anyio.fail_after(2 * LIMIT):
        async with signing_in(daemon, workspace) as it:

            def person(watching: Terminal) -> None:
                watching.wait_for("Sign-in p until")
                watching.wait_for(f"plurnk-mcpd authorize -w {it.workspace} p")
                watching.wait_for("code_challenge")
                watching.type("\x03")
                assert watching.exit_status() == 130

            with shell(it, tmp_path, "watch") as watching:
                await anyio.to_thread.run_sync(watching.wait_for, "Nothing is attached.")
                await it.attach()
                await anyio.to_thread.run_sync(person, watching)


async def test_a_call_that_needs_more_is_continued_after_the_sign_in(
    daemon: Daemon, workspace: str, tmp_path: Path
) -> None:
    redirect = f"http://127.0.0.1:{free_port()}/callback"

    def person(it: SigningIn) -> None:
        browser = browser_in(tmp_path)
        with shell(it, tmp_path, "call", "p", "echo", "text=hello", browser=browser) as calling:
            calling.wait_for("Sign in there?")
            assert "Host: 127.0.0.1" in calling.screen
            calling.type("y\n")
            assert calling.exit_status() == 0, calling.screen
            assert "hello" in calling.screen.partition("Sign in there?")[2]

    with anyio.fail_after(2 * LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.scopes_by_tool["echo"] = "write"
            await it.signed_in(redirectUrl=redirect)
            await anyio.to_thread.run_sync(person, it)
