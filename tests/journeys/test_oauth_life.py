"""The life of a token: one shared refresh, loss, step-up inside a call, another issuer, a restart. SPEC §oauth."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from tests.support.authorization_server import REDIRECT, authorization_server
from tests.support.browser import callback_of
from tests.support.daemon import Daemon, running_daemon
from tests.support.eventually import eventually
from tests.support.secrets_scan import leaks, leaks_in
from tests.support.signing_in import (
    ENVIRONMENT,
    LIMIT,
    PRE_REGISTERED,
    SigningIn,
    callback_for,
    signing_in,
    the_question,
)

pytestmark = [pytest.mark.spec("oauth")]


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the clients' secret."""
    async with running_daemon(tmp_path_factory.mktemp("daemon"), ENVIRONMENT) as daemon:
        yield daemon


async def ten_calls(it: SigningIn, meanwhile: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return the answers of ten calls at once; ``meanwhile`` is awaited while they run."""
    answers: list[dict[str, Any]] = []

    async def one() -> None:
        answers.append(await it.call("echo", text="hello"))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(one)
        await meanwhile()
    return answers


async def test_ten_calls_at_expiry_share_one_refresh_and_hold_nobody_up(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            await it.signed_in()
            await daemon.attach(workspace, {"name": "open", "transport": "http", "url": scripted_url})
            it.granting.expire_all()
            refused = it.server.refused
            gate = it.granting.gates["token:refresh_token"] = anyio.Event()

            async def meanwhile() -> None:
                await eventually(lambda: it.server.refused >= refused + 10)
                await it.granting.has_seen("token:refresh_token", 1)
                # Neither a list nor another server waits for the refresh.
                assert await it.state() == "connected"
                tools = (await it.act("tools", server="open"))["tools"]
                assert tools
                gate.set()

            answers = await ten_calls(it, meanwhile)
            assert [answer.get("status") for answer in answers] == [200] * 10
    assert it.granting.count("token:refresh_token") == 1
    assert it.server.calls == ["echo"] * 10
    assert it.granting.of("token:refresh_token")[0].parameters["resource"] == it.server.url


@pytest.mark.parametrize("rotates", [True, False])
async def test_each_expiry_is_refreshed_with_the_newest_token(
    daemon: Daemon, workspace: str, *, rotates: bool
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.granting.rotates = rotates
            await it.signed_in(**PRE_REGISTERED)
            for _ in range(3):
                it.granting.expire_all()
                assert (await it.call("echo"))["status"] == 200
    assert it.granting.count("token:refresh_token") == 3
    assert it.granting.count("authorize") == 1


async def test_a_token_that_tells_its_end_is_refreshed_before_it_is_refused(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.granting.token_lifetime = 1.0
            await it.signed_in()
            refused = it.server.refused
            await anyio.sleep(1.1)  # the lifetime itself: there is no event for it
            assert (await it.call("echo"))["status"] == 200
            assert it.server.refused == refused


async def test_a_revoked_token_asks_for_a_sign_in_inside_the_call(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            await it.signed_in()
            it.granting.revoke_all()
            question = the_question(await it.call("echo", text="hello"))
            done = await it.answered(question, await callback_for(question))
            assert (done["status"], done["content"][0]["text"]) == (200, "hello")
            assert (await it.call("echo"))["status"] == 200
    assert it.granting.count("authorize") == 2
    assert it.server.calls == ["echo", "echo"]


async def test_a_missing_scope_asks_for_both_and_the_same_call_finishes(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.base_scope, it.server.scopes_by_tool = "use", {"write": "write"}
            await it.signed_in()
            question = the_question(await it.call("write", text="once"))
            assert question["responseSchema"]["required"] == ["callbackUrl"]
            [entry] = (await it.listed())["pending"]
            assert (entry["name"], entry["action"]) == ("p", "workspace.mcp.call")
            wrong = await it.answered(question, f"{REDIRECT}?code=c&state=foreign")
            assert wrong["code"] == "oauth-callback-invalid"
            done = await it.answered(question, await callback_for(question))
            assert (done["status"], done["content"][0]["text"]) == (200, "once")
            assert (await it.call("echo"))["status"] == 200
    scopes = [set(asked.parameters["scope"].split()) for asked in it.granting.of("authorize")]
    assert scopes == [{"use"}, {"use", "write"}]
    assert it.granting.count("token:refresh_token") == 0
    assert it.server.calls == ["write", "echo"]


async def test_the_action_of_any_client_releases_the_call(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.scopes_by_tool = {"write": "write"}
            await it.signed_in()
            question = the_question(await it.call("write", text="once"))
            done = await it.complete(await callback_for(question))
            assert (done["status"], done["content"][0]["text"]) == (200, "once")
            assert (await it.listed())["pending"] == []
    assert it.server.calls == ["write"]


async def test_a_person_who_declines_ends_the_call(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.scopes_by_tool = {"write": "write"}
            await it.signed_in()
            question = the_question(await it.call("write"))
            ended = await it.answered(question, "", status="cancelled", payload=None)
            assert (ended["code"], ended["outcome"]) == ("authorization-refused", "rejected")
            assert (await it.listed())["pending"] == []
            assert (await it.call("echo"))["status"] == 200
    assert it.server.calls == ["echo"]


async def test_a_server_that_is_never_content_is_given_up_after_two_sign_ins(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            await it.signed_in()
            it.server.scopes_by_tool = {"admin": "first"}
            answer = await it.call("admin")
            for wanted in ("second", "third"):
                it.server.scopes_by_tool = {"admin": wanted}
                question = the_question(answer)
                answer = await it.answered(question, await callback_for(question))
            assert (answer["code"], answer["outcome"]) == ("authorization-refused", "rejected")
    assert it.granting.count("authorize") == 3
    assert it.server.calls == []


async def test_a_reconnect_inherits_what_was_granted_and_a_changed_definition_does_not(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            await it.signed_in()
            assert (await it.act("reconnect", name="p"))["status"] == 200
            assert it.granting.count("authorize") == it.granting.count("register") == 1
            changed = await it.act("replace", server=it.definition(scope="more"))
            assert await it.state() == "connected"
            assert (await it.consented(changed))["status"] == 200
    assert it.granting.count("authorize") == 2


async def test_another_authorization_server_gets_nothing_of_the_first(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it, authorization_server() as other:
            await it.signed_in()
            it.server.authorization = other
            question = the_question(await it.call("echo", text="hello"))
            done = await it.answered(question, await callback_for(question))
            assert done["status"] == 200
            told = str([(asked.parameters, asked.headers) for asked in other.asked])
            first = {f"secret {number}": secret for number, secret in enumerate(it.granting.secrets)}
            assert leaks_in(first, told.encode(), where="the other server") == []
            assert other.count("register") == 1
            assert other.count("token:refresh_token") == 0


async def test_after_a_restart_a_person_signs_in_again_and_no_secret_was_written(
    new_daemon: Callable[..., Daemon], workspace: str
) -> None:
    daemon = new_daemon({**ENVIRONMENT, "PLURNK_LOG_LEVEL": "debug", "PLURNK_LOG_FORMAT": "json"})
    with anyio.fail_after(3 * LIMIT):
        await daemon.start()
        async with signing_in(daemon, workspace) as it:
            shown: list[Any] = [await it.signed_in(**PRE_REGISTERED)]
            it.granting.expire_all()
            shown += [await it.call("echo"), await it.listed()]
            it.server.scopes_by_tool = {"write": "write"}
            question = the_question(await it.call("write"))
            shown += [question, await it.answered(question, await callback_for(question))]
            bad = await callback_of((await it.act("replace", server=it.definition()))["authorization"]["url"])
            shown += [await it.complete(bad.replace("state=", "state=x"))]
            assert await daemon.stop() == 0
            await daemon.start()
            asked = len(it.granting.of("authorize"))
            assert await it.state() == "authorization-required"
            refused = await it.call("echo")
            assert refused["code"] == "server-not-connected"
            assert it.granting.count("authorize") == asked
            again = await it.act("reconnect", name="p")
            done = await it.consented(again)
            assert (done["status"], done["server"]["state"]) == (200, "connected")
            shown += [refused, again, done, await it.listed()]
            assert await daemon.stop() == 0
            secrets = {
                f"{secret.partition('-')[0]} {number}": secret
                for number, secret in enumerate(it.granting.secrets)
            }
    assert len(secrets) > 8
    assert leaks_in(secrets, str(shown).encode(), where="what clients were told") == []
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []
