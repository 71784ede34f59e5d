"""authorizations.py: which kind a definition gets, what is inherited and what is declared."""

from typing import Any

import anyio
import pytest
from yarl import URL

from app.connections.connector import CAPABILITIES
from app.connections.oauth.authorizations import CLIENT_CREDENTIALS, Authorizations, capabilities_with
from app.connections.oauth.interactive import InteractiveAuthorization
from app.connections.oauth.machine import MachineAuthorization
from app.core.definitions import parse_definition
from app.core.masking import Mask
from app.ports import Authorization, Target
from app.settings import Settings
from tests.support.authorized_house import DYNAMIC, MACHINE, PRE_REGISTERED, authorized_house, guard
from tests.support.peers.programs import http_definition, stdio_definition
from tests.support.scripted_http import scripted_http

pytestmark = pytest.mark.spec("oauth")
INHERITED = "inherited"


class Foreign:
    """An authorization that none of ours made."""

    has_token = True


@pytest.mark.parametrize(
    "config, kind",
    [
        (DYNAMIC, InteractiveAuthorization),
        (PRE_REGISTERED, InteractiveAuthorization),
        ({**DYNAMIC, "clientMetadataUrl": "https://client.example/id.json"}, InteractiveAuthorization),
        (MACHINE, MachineAuthorization),
        ({"type": "bearer", "token": "${T}"}, None),
        (None, None),
    ],
)
async def test_a_definition_gets_its_kind_afresh_or_what_it_was_granted_before(
    config: dict[str, Any] | None, kind: type[Authorization] | None
) -> None:
    authorizations = Authorizations(Settings(), Mask())
    members = {} if config is None else {"authorization": config}
    definition = parse_definition(http_definition("p", "https://p.example/mcp", **members))
    url = URL("https://p.example/mcp")
    async with anyio.create_task_group() as group:
        for given in (None, Foreign()):
            made = authorizations.of(Target("w", definition, "workspace", True, given), url, "s", group)
            assert (None if made is None else type(made.authorization)) is kind
        if made is None:
            return
        again = Target("w", definition, "workspace", True, made.authorization)
        heir = authorizations.of(again, url, "s", group)
        assert heir is not None
        assert heir is not made
        assert heir.authorization is made.authorization
        extensions = capabilities_with(CAPABILITIES, made)["extensions"]
        assert isinstance(extensions, dict)
        assert (CLIENT_CREDENTIALS in extensions) is (kind is MachineAuthorization)
    assert CLIENT_CREDENTIALS not in str(CAPABILITIES)


async def test_a_child_has_none() -> None:
    target = Target("w", parse_definition(stdio_definition("p")), "workspace", is_explicit=True)
    async with anyio.create_task_group() as group:
        assert Authorizations(Settings(), Mask()).of(target, URL("http://x"), None, group) is None


async def test_client_credentials_are_declared_by_their_own_connection_alone() -> None:
    async with scripted_http() as peer, authorized_house() as home:
        await home.connector.open(
            Target("w", parse_definition(http_definition("q", peer.url)), "workspace", is_explicit=True),
            home.group,
            lambda _connection: None,
        )
        plain = len(peer.seen)
        guard(peer, home.issuer)
        await home.open(MACHINE, url=peer.url)
        meta = "io.modelcontextprotocol/clientCapabilities"
        declared = [
            CLIENT_CREDENTIALS in seen.params["_meta"][meta]["extensions"] for seen in peer.seen if seen.body
        ]
        assert declared == [False] * plain + [True] * (len(declared) - plain)
        assert len(declared) > plain
