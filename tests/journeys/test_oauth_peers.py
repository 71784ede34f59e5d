"""The tests' authorization servers are real: the official SDK's client and Authlib's get through. SPEC §oauth."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from typing_extensions import override

from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.browser import callback_of
from tests.support.fastmcp_oauth import fastmcp_oauth
from tests.support.protected_server import ProtectedServer, protected_server

pytestmark = pytest.mark.spec("oauth")


class _Storage(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    @override
    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    @override
    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    @override
    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    @override
    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def sdk_client(url: str) -> AsyncGenerator[Client]:
    """Give the official client, signed in by a browser."""
    callbacks: list[str] = []

    async def redirected(address: str) -> None:
        callbacks.append(await callback_of(address))

    async def called_back() -> AuthorizationCodeResult:
        answer = {name: values[0] for name, values in parse_qs(urlsplit(callbacks[-1]).query).items()}
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer.get("iss"))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(REDIRECT)], client_name="the official client")
    auth = OAuthClientProvider(url, metadata, _Storage(), redirected, called_back)
    async with (
        httpx2.AsyncClient(auth=auth, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def both() -> AsyncGenerator[tuple[AuthorizationServer, ProtectedServer]]:
    async with authorization_server() as granting, protected_server(granting) as server:
        yield granting, server


async def test_the_official_client_registers_signs_in_and_steps_up() -> None:
    with anyio.fail_after(20):
        async with both() as (granting, server):
            server.base_scope, server.scopes_by_tool = "use", {"write": "use write"}
            async with sdk_client(server.url) as client:
                await client.call_tool("echo", {"text": "hello"})
                await client.call_tool("write", {})
    assert [asked.parameters["scope"] for asked in granting.of("authorize")] == ["use", "use write"]
    assert granting.count("register") == 1
    assert server.calls == ["echo", "write"]


async def test_the_official_client_signs_in_to_fastmcp() -> None:
    with anyio.fail_after(20):
        async with fastmcp_oauth() as server, sdk_client(server.url) as client:
            assert "hello" in str(await client.call_tool("echo", {"text": "hello"}))


def authlib_client(granting: AuthorizationServer, client_id: str) -> Any:
    """Return Authlib's own client, whose base class is not there without types."""
    return AsyncOAuth2Client(
        client_id,
        granting.clients[client_id].client_secret,
        redirect_uri=REDIRECT,
        code_challenge_method="S256",
        token_endpoint_auth_method="client_secret_basic",
        trust_env=False,
    )


async def signed_in(granting: AuthorizationServer, client: Any, **sent: str) -> dict[str, str]:
    """Return the tokens for one trip of a person; ``sent`` replaces parameters of the token request."""
    verifier = generate_token(48)
    url, _ = client.create_authorization_url(
        f"{granting.issuer}/authorize", code_verifier=verifier, resource="r:1", scope="use"
    )
    callback = await callback_of(url)
    parameters = {"code_verifier": verifier, "resource": "r:1", **sent}
    return await client.fetch_token(f"{granting.issuer}/token", authorization_response=callback, **parameters)


async def refreshed(granting: AuthorizationServer, client: Any, token: str) -> dict[str, str]:
    return await client.refresh_token(f"{granting.issuer}/token", token, resource="r:1")


async def test_a_rotated_refresh_token_is_good_once() -> None:
    with anyio.fail_after(20):
        async with authorization_server() as granting, authlib_client(granting, "pre-registered") as client:
            first = await signed_in(granting, client)
            second = await refreshed(granting, client, first["refresh_token"])
            assert granting.token_of(first["access_token"]) is None
            assert granting.token_of(second["access_token"]) is not None
            with pytest.raises(Exception, match="invalid_grant"):
                await refreshed(granting, client, first["refresh_token"])
    assert granting.count("token:refresh_token") == 2
    assert granting.count("token") == 3


async def test_a_refresh_token_that_is_not_rotated_stays_good() -> None:
    with anyio.fail_after(20):
        async with authorization_server() as granting, authlib_client(granting, "pre-registered") as client:
            granting.rotates = False
            first = await signed_in(granting, client)
            await refreshed(granting, client, first["refresh_token"])
            again = await refreshed(granting, client, first["refresh_token"])
            assert granting.token_of(again["access_token"]) is not None
            granting.revoke_all()
            assert granting.token_of(again["access_token"]) is None


@pytest.mark.parametrize(
    ("sent", "error"),
    [({"code_verifier": "x" * 48}, "invalid_grant"), ({"resource": "r:2"}, "invalid_target")],
)
async def test_a_code_is_bound_to_its_verifier_and_its_resource(sent: dict[str, str], error: str) -> None:
    with anyio.fail_after(20):
        async with authorization_server() as granting, authlib_client(granting, "pre-registered") as client:
            with pytest.raises(Exception, match=error):
                await signed_in(granting, client, **sent)


async def test_a_machine_gets_a_token_for_itself() -> None:
    with anyio.fail_after(20):
        async with authorization_server("/tenant") as granting, authlib_client(granting, "machine") as client:
            token = await client.fetch_token(
                f"{granting.issuer}/token", grant_type="client_credentials", resource="r:1"
            )
    assert granting.token_of(token["access_token"]) is not None
    assert "refresh_token" not in token


@pytest.mark.parametrize(
    ("switches", "told"),
    [
        ({}, {"code", "state", "iss"}),
        ({"tells_issuer": False}, {"code", "state"}),
        ({"denies": True}, {"error", "state", "iss", "error_description"}),
    ],
)
async def test_a_browser_brings_back_what_the_server_says(switches: dict[str, bool], told: set[str]) -> None:
    with anyio.fail_after(20):
        async with authorization_server() as granting, authlib_client(granting, "pre-registered") as client:
            vars(granting).update(switches)
            url, _ = client.create_authorization_url(
                f"{granting.issuer}/authorize", code_verifier=generate_token(48), resource="r:1"
            )
            callback = await callback_of(url)
    assert callback.startswith(REDIRECT)
    assert parse_qs(urlsplit(callback).query).keys() == told
