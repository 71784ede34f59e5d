"""A person signs in: three ways to be a client, callbacks good and bad, what a pending one holds. SPEC §oauth."""

from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import pytest

from tests.support.authorization_server import REDIRECT
from tests.support.browser import callback_of
from tests.support.daemon import Daemon, running_daemon
from tests.support.fastmcp_oauth import fastmcp_oauth
from tests.support.signing_in import ENVIRONMENT, LIMIT, METADATA_URL, PRE_REGISTERED, signing_in

pytestmark = [pytest.mark.spec("oauth")]


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the clients' secret."""
    async with running_daemon(tmp_path_factory.mktemp("daemon"), ENVIRONMENT) as daemon:
        yield daemon


def with_query(callback: str, **changes: str | None) -> str:
    """Return the callback with parameters replaced; None takes one away."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(callback).query).items()}
    changed = {name: value for name, value in {**query, **changes}.items() if value is not None}
    return f"{REDIRECT}?{urlencode(changed)}"


@pytest.mark.parametrize(
    ("client", "offers", "client_id", "registered"),
    [
        (PRE_REGISTERED, {}, "pre-registered", 0),
        ({"clientMetadataUrl": METADATA_URL}, {"takes_metadata_documents": True}, METADATA_URL, 0),
        ({"clientMetadataUrl": METADATA_URL}, {}, "registered-2", 1),
        ({}, {"takes_metadata_documents": True}, "registered-2", 1),
    ],
    ids=["pre-registered", "metadata document", "document not taken", "registration"],
)
async def test_a_person_signs_in_and_the_server_is_attached(
    daemon: Daemon,
    workspace: str,
    client: dict[str, str],
    offers: dict[str, bool],
    client_id: str,
    registered: int,
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            vars(it.granting).update(offers)
            answer = await it.attach(**client)
            assert answer["authorization"].keys() == {"url", "expiresAt"}
            listed = await it.listed()
            entry = {"name": "p", "action": "workspace.mcp.attach", "authorization": answer["authorization"]}
            assert (listed["servers"], listed["pending"]) == ([], [entry])
            done = await it.consented(answer)
            assert (done["status"], done["server"]["state"]) == (201, "connected")
            assert (await it.listed())["pending"] == []
            assert (await it.call("echo", text="hello"))["content"][0]["text"] == "hello"
    assert it.granting.count("register") == registered
    [authorized], [exchanged] = it.granting.of("authorize"), it.granting.of("token")
    assert authorized.parameters["client_id"] == client_id
    assert authorized.parameters["code_challenge_method"] == "S256"
    assert authorized.parameters["redirect_uri"] == REDIRECT
    assert authorized.parameters["resource"] == exchanged.parameters["resource"] == it.server.url
    # 128 bits are at least 22 characters of base64.
    assert len(authorized.parameters["state"]) >= 22
    for registration in it.granting.of("register"):
        assert registration.parameters["application_type"] == "native"
        assert "refresh_token" in registration.parameters["grant_types"]


async def test_a_person_signs_in_to_fastmcp(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with fastmcp_oauth() as peer:
            client = {"type": "oauth", "redirectUrl": REDIRECT}
            server = {"name": "f", "transport": "http", "url": peer.url, "authorization": client}
            answer = await daemon.act(workspace, "workspace.mcp.attach", server=server)
            callback = await callback_of(answer["authorization"]["url"])
            done = await daemon.act(workspace, "workspace.mcp.oauth.complete", name="f", callbackUrl=callback)
            assert done["server"]["tools"] == ["echo"]
            assert await daemon.call_text(workspace, "f", "echo", text="hello") == "hello"


async def test_a_bad_callback_burns_nothing_and_the_good_one_still_works(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            bad = {
                "another port": callback.replace(":7777", ":7778"),
                "another path": callback.replace("/callback", "/elsewhere"),
                "another scheme": callback.replace("http:", "https:"),
                "no state": with_query(callback, state=None),
                "another state": with_query(callback, state="x" * 43),
                "two states": f"{callback}&state=x",
                "an error of nobody": with_query(callback, state="nope", error="access_denied", code=None),
                "no callback at all": "nonsense",
            }
            codes = {name: (await it.complete(url)).get("code") for name, url in bad.items()}
            assert codes == dict.fromkeys(bad, "oauth-callback-invalid")
            assert len((await it.listed())["pending"]) == 1
            assert it.granting.count("token") == 0
            assert (await it.complete(callback))["status"] == 201
            assert (await it.complete(callback))["code"] == "oauth-callback-invalid"
    assert it.granting.count("token") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"code": None},
        {"code": None, "error": "access_denied", "error_description": "canary <b>text</b>"},
    ],
    ids=["another issuer", "no issuer", "no code", "a refusal"],
)
async def test_a_bad_callback_with_the_right_state_ends_the_sign_in(
    daemon: Daemon, workspace: str, changes: dict[str, str | None]
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            refused = await it.complete(with_query(callback, **changes))
            assert refused["code"] == "oauth-callback-invalid"
            assert "canary" not in str(refused)
            assert (await it.listed())["pending"] == []
            assert (await it.complete(callback))["code"] == "oauth-callback-invalid"
            assert (await it.consented(await it.attach()))["status"] == 201
    assert it.granting.count("token") == 1


async def test_a_sign_in_belongs_to_its_workspace_and_its_server(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            other = await daemon.act(
                f"{workspace}-other", "workspace.mcp.oauth.complete", name="p", callbackUrl=callback
            )
            assert other["code"] == "oauth-not-pending"
            assert (await it.complete(callback, name="q"))["code"] == "oauth-not-pending"
            assert it.granting.count("token") == 0
            assert (await it.complete(callback))["status"] == 201


async def test_a_second_attach_replaces_the_first_sign_in_and_detach_drops_it(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            first = await callback_of((await it.attach())["authorization"]["url"])
            second = await callback_of((await it.attach())["authorization"]["url"])
            assert (await it.complete(first))["code"] == "oauth-callback-invalid"
            assert (await it.act("detach", name="p"))["status"] == 200
            assert (await it.complete(second))["code"] == "oauth-not-pending"
            assert await it.listed() == {"servers": [], "detached": [], "pending": []}
    assert it.granting.count("token") == 0


async def test_other_changes_of_the_workspace_leave_a_sign_in_alone(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            await daemon.attach(workspace, {"name": "open", "transport": "http", "url": scripted_url})
            assert (await it.complete(callback))["status"] == 201
            assert [each["name"] for each in (await it.listed())["servers"]] == ["open", "p"]


async def test_two_completes_at_once_exchange_one_code(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            answers: list[dict[str, Any]] = []

            async def one() -> None:
                answers.append(await it.complete(callback))

            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)
            done = [answer for answer in answers if answer.get("status") == 201]
            [refused] = [answer for answer in answers if answer not in done]
            assert len(done) == 1
            assert refused["code"] == "oauth-callback-invalid"
    assert it.granting.count("token") == 1


async def test_detach_during_the_exchange_cancels_the_attach(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            callback = await callback_of((await it.attach())["authorization"]["url"])
            gate = it.granting.gates["token"] = anyio.Event()
            answers: list[dict[str, Any]] = []

            async def one() -> None:
                answers.append(await it.complete(callback))

            async with anyio.create_task_group() as group:
                group.start_soon(one)
                await it.granting.has_seen("token", 1)
                assert (await it.act("detach", name="p"))["status"] == 200
                gate.set()
            assert answers[0]["code"] == "server-changed"
            assert await it.listed() == {"servers": [], "detached": [], "pending": []}


@pytest.mark.parametrize(
    "told",
    [
        {"issuer": "https://attacker.example"},
        {"code_challenge_methods_supported": ["plain"]},
        {"code_challenge_methods_supported": None},
        {"registration_endpoint": None},
        {"token_endpoint": None},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=lambda told: "-".join(f"{name} {value}" for name, value in told.items()),
)
async def test_metadata_that_cannot_be_used_is_refused(
    daemon: Daemon, workspace: str, told: dict[str, Any]
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.granting.extra_metadata = told
            assert (await it.attach())["code"] == "oauth-metadata-invalid"
            assert (await it.listed())["pending"] == []
    assert it.granting.asked == it.granting.of("metadata")


async def test_a_resource_of_somebody_else_is_refused(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.resource = "https://evil.example/mcp"
            assert (await it.attach())["code"] == "oauth-metadata-invalid"
    assert it.granting.asked == []


async def test_the_scopes_are_the_challenge_s_then_the_definition_s_then_the_metadata_s(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.supported_scopes = ["listed"]
            await it.consented(await it.attach())
            await it.act("detach", name="p")
            await it.consented(await it.attach(scope="defined"))
            await it.act("detach", name="p")
            it.server.base_scope, it.granting.supported_scopes = "asked", ["asked", "offline_access"]
            await it.consented(await it.attach(scope="defined"))
    scopes = [set(asked.parameters["scope"].split()) for asked in it.granting.of("authorize")]
    assert scopes == [{"listed"}, {"defined"}, {"asked", "offline_access"}]
