"""What crosses a sign-in: a task, another call, another change, a failing neighbour, the daemon's end. SPEC §oauth."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from tests.support.authorization_server import REDIRECT
from tests.support.authorized_house import guard
from tests.support.browser import callback_of
from tests.support.daemon import Daemon, running_daemon
from tests.support.deferring import completed, handle
from tests.support.scripted_http import FRESH, REVISION, Reply, result, scripted_http
from tests.support.secrets_scan import leaks
from tests.support.signing_in import ENVIRONMENT, LIMIT, callback_for, signing_in, the_question

pytestmark = [pytest.mark.spec("oauth")]

FOREIGN = f"{REDIRECT}?code=c&state=foreign"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the clients' secret."""
    async with running_daemon(tmp_path_factory.mktemp("daemon"), ENVIRONMENT) as daemon:
        yield daemon


async def test_one_sign_in_serves_two_calls_that_asked_at_once(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.scopes_by_tool = {"write": "write"}
            await it.signed_in()
            answers: list[dict[str, Any]] = []

            async def asking(text: str) -> None:
                answers.append(await it.call("write", text=text))

            async with anyio.create_task_group() as group:
                group.start_soon(asking, "one")
                group.start_soon(asking, "two")
            first, second = map(the_question, answers)
            done = [await it.answered(first, await callback_for(first)), await it.answered(second, FOREIGN)]
            assert [each["status"] for each in done] == [200, 200]
            assert {each["content"][0]["text"] for each in done} == {"one", "two"}
            assert (await it.listed())["pending"] == []
    assert it.granting.count("authorize") == 2
    assert it.server.calls == ["write", "write"]


async def test_a_poll_that_is_refused_asks_and_the_task_goes_on(daemon: Daemon, workspace: str) -> None:
    discovered = result({"supportedVersions": [REVISION], "capabilities": {"tools": {}, **TASKS}})
    polled = anyio.Event()

    def poll(_seen: object) -> Reply:
        if not polled.is_set():
            polled.set()
            it.granting.revoke_all()
            return Reply(401, {"WWW-Authenticate": "Bearer"})
        return result(completed())

    answers: Any = {"server/discover": discovered, "tools/call": result({**FRESH, **handle()})}
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it, scripted_http(answers) as peer:
            guard(peer, it.granting)
            peer.answers["tasks/get"] = poll
            it.server.url = peer.url
            await it.signed_in()
            question = the_question(await it.call("echo"))
            done = await it.answered(question, await callback_for(question))
            assert (done["status"], done["isError"]) == (200, False)
            assert [len(peer.of(method)) for method in ("tools/call", "tasks/get")] == [1, 2]
            await it.act("detach", name="p")


async def test_a_change_that_overtakes_a_sign_in_is_a_conflict_said_once(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    path = f"/v1/workspaces/{workspace}/servers/p/oauth/complete"
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            await daemon.attach(workspace, {"name": "p", "transport": "http", "url": scripted_url})
            async with daemon.client() as client:
                told = [await client.post(path, json={"callbackUrl": callback}) for _ in range(2)]
            assert [(each.status_code, each.json()["code"]) for each in told] == [
                (409, "oauth-target-conflict"),
                (404, "oauth-not-pending"),
            ]
            assert await it.state() == "connected"
    assert it.granting.count("token") == 0


async def test_a_refresh_that_fails_for_now_ends_the_calls_that_waited_for_it_alone(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            await it.signed_in()
            it.granting.expire_all()
            it.granting.failures = [503]
            gate = it.granting.gates["token:refresh_token"] = anyio.Event()
            answers: list[dict[str, Any]] = []

            async def calling() -> None:
                answers.append(await it.call("echo"))

            async with anyio.create_task_group() as group:
                refused = it.server.refused
                for _ in range(10):
                    group.start_soon(calling)
                while it.server.refused < refused + 10:
                    await anyio.sleep(0.01)
                gate.set()
            assert {(each["code"], each["outcome"]) for each in answers} == {
                ("server-unavailable", "rejected")
            }
            assert (await it.call("echo"))["status"] == 200
    assert it.granting.count("token:refresh_token") == 2
    assert (it.granting.count("authorize"), it.server.calls) == (1, ["echo"])


async def test_whenever_the_daemon_ends_a_person_starts_afresh_and_a_failing_neighbour_costs_no_sign_in(
    new_daemon: Callable[..., Daemon], workspace: str
) -> None:
    daemon = new_daemon({**ENVIRONMENT, "PLURNK_LOG_LEVEL": "debug", "PLURNK_LOG_FORMAT": "json"})
    with anyio.fail_after(3 * LIMIT):
        await daemon.start()
        async with signing_in(daemon, workspace) as it, scripted_http() as neighbour:
            await it.signed_in()
            await daemon.attach(workspace, {"name": "q", "transport": "http", "url": neighbour.url})
            callback = await callback_of(
                (await it.act("replace", server=it.definition(scope="x")))["authorization"]["url"]
            )
            it.granting.gates["token"] = anyio.Event()
            ends: list[Any] = []

            async def completing() -> None:
                ends.append(await it.complete(callback))

            async with anyio.create_task_group() as group:
                group.start_soon(completing)
                await it.granting.has_seen("token", 2)
                assert await daemon.stop() == 0
            assert ends[0]["code"] == "shutting-down"
            it.granting.gates.pop("token").set()

            answers, neighbour.answers = neighbour.answers, {}
            await daemon.start()
            states = {each["name"]: each["state"] for each in (await it.listed())["servers"]}
            assert states == {"p": "authorization-required", "q": "unavailable"}
            assert (await it.complete(callback))["code"] == "oauth-not-pending"
            asked = await it.act("reconnect", name="p")
            assert asked["status"] == 202
            assert (await it.consented(asked))["status"] == 200
            neighbour.answers = answers
            while {each["state"] for each in (await it.listed())["servers"]} != {"connected"}:
                await anyio.sleep(0.05)
            assert it.granting.count("authorize") == 3

            late = await callback_of(
                (await it.act("replace", server=it.definition(scope="x")))["authorization"]["url"]
            )
            assert daemon.process is not None
            daemon.process.kill()
            await daemon.ended()
            await daemon.start()
            listed = await it.listed()
            assert listed["pending"] == []
            assert await it.state() == "authorization-required"
            assert (await it.complete(late))["code"] == "oauth-not-pending"
            fresh = await it.act("reconnect", name="p")
            assert fresh["authorization"]["url"] != asked["authorization"]["url"]
            assert await daemon.stop() == 0
        secrets = {f"secret {number}": secret for number, secret in enumerate(it.granting.secrets)}
        assert leaks(secrets, [daemon.home, daemon.log_file]) == []
