"""A client that signs in for itself, with nobody to ask: client credentials and bearer references. SPEC §oauth."""

import base64
from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.support.daemon import Daemon, running_daemon
from tests.support.signing_in import CLIENT_SECRET, ENVIRONMENT, LIMIT, signing_in

pytestmark = [pytest.mark.spec("oauth")]
EXTENSION = "io.modelcontextprotocol/oauth-client-credentials"


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the machine's secret."""
    async with running_daemon(tmp_path_factory.mktemp("daemon"), ENVIRONMENT) as daemon:
        yield daemon


async def test_a_machine_attaches_at_once_and_gets_another_token_when_one_ends(
    daemon: Daemon, workspace: str
) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            assert (await it.act("attach", server=it.machine()))["status"] == 201
            it.granting.expire_all()
            assert (await it.call("echo", text="hello"))["content"][0]["text"] == "hello"
    asked = it.granting.of("token:client_credentials")
    basic = "Basic " + base64.b64encode(f"machine:{CLIENT_SECRET}".encode()).decode()
    assert [each.headers["authorization"] for each in asked] == [basic, basic]
    assert {each.parameters["resource"] for each in asked} == {it.server.url}
    assert it.granting.count("authorize") == it.granting.count("register") == 0


async def test_the_extension_is_declared_on_that_connection_only(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as machine, signing_in(daemon, workspace) as person:
            await machine.act("attach", server={**machine.machine(), "name": "m"})
            await person.signed_in()
    declared = [
        {EXTENSION in each.get("extensions", {}) for each in house.server.capabilities}
        for house in (machine, person)
    ]
    assert declared == [{True}, {False}]


async def test_a_secret_that_is_wrong_is_told_without_it(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            del it.granting.clients["machine"]
            refused = await it.act("attach", server=it.machine())
    assert (refused["code"], refused["clientId"]) == ("oauth-client-credentials-failed", "machine")
    assert CLIENT_SECRET not in str(refused)


async def test_credentials_of_one_issuer_are_not_shown_to_another(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            bound = it.machine(issuer="https://issuer.example")
            refused = await it.act("attach", server=bound)
            assert refused["code"] == "oauth-client-credentials-failed"
            assert it.granting.count("token") == 0
            bound = it.machine(issuer=it.granting.issuer)
            assert (await it.act("attach", server=bound))["status"] == 201


async def test_more_scopes_are_asked_for_by_itself_once(daemon: Daemon, workspace: str) -> None:
    with anyio.fail_after(LIMIT):
        async with signing_in(daemon, workspace) as it:
            it.server.base_scope, it.server.scopes_by_tool = "use", {"write": "write"}
            await it.act("attach", server=it.machine(scope="use"))
            assert (await it.call("write"))["status"] == 200
    scopes = [set(each.parameters["scope"].split()) for each in it.granting.of("token")]
    assert scopes == [{"use"}, {"use", "write"}]
