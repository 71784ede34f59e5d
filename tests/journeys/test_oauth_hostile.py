"""What hostile authorization servers say is told by a code, in our words, and written nowhere. SPEC §oauth, §security.

Hand-written answers: no good authorization server gives any of them.
"""

from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from tests.support.authorization_server import REDIRECT
from tests.support.daemon import Daemon, running_daemon
from tests.support.oauth_documents import METADATA, document, documents, metadata
from tests.support.scripted_http import Reply, ScriptedHttp
from tests.support.secrets_scan import leaks, leaks_in
from tests.support.signing_in import CLIENT_SECRET, ENVIRONMENT, LIMIT

pytestmark = [pytest.mark.spec("oauth", "security")]

CANARY = "canary-of-the-authorization-server"
CLIENT = {"clientId": "c", "clientSecret": "${CLIENT_SECRET}"}
JSON = {"Content-Type": "application/json"}
TOKEN: dict[str, Any] = {"access_token": CANARY, "token_type": "Bearer", "refresh_token": f"{CANARY}-r"}

TOKENS: dict[str, tuple[Reply, str]] = {
    "an error in its own words": (
        document({"error": CANARY, "error_description": CANARY, "error_uri": f"http://{CANARY}"}, 400),
        "oauth-callback-invalid",
    ),
    "a known error": (
        document({"error": "invalid_grant", "error_description": CANARY}, 400),
        "oauth-callback-invalid",
    ),
    "a redirect": (Reply(307, {"Location": f"/{CANARY}"}), "oauth-metadata-invalid"),
    "a page": (Reply(200, {"Content-Type": "text/html"}, f"<p>{CANARY}".encode()), "oauth-metadata-invalid"),
    "no number": (
        Reply(200, JSON, b'{"access_token":"%b","expires_in":NaN}' % CANARY.encode()),
        "oauth-metadata-invalid",
    ),
    "what is compressed": (
        Reply(200, {**JSON, "Content-Encoding": "gzip"}, b"\x1f\x8b"),
        "oauth-metadata-invalid",
    ),
    "what nests": (Reply(200, JSON, b'{"a":' * 50_000 + b"1" + b"}" * 50_000), "oauth-metadata-invalid"),
    "a megabyte": (Reply(200, JSON, b" " * (1024 * 1024 + 1)), "oauth-metadata-invalid"),
    "a line break": (document({**TOKEN, "access_token": f"a\r\nX: {CANARY}"}), "oauth-metadata-invalid"),
    "no ASCII": (document({**TOKEN, "access_token": f"{CANARY}é"}), "oauth-metadata-invalid"),
    "a huge token": (document({**TOKEN, "access_token": CANARY * 1000}), "oauth-metadata-invalid"),
    "a token that is refused": (
        document({**TOKEN, "expires_in": -1, "scope": f"{CANARY} " * 1000}),
        "authorization-refused",
    ),
    "a failure": (document({"error": CANARY}, 503), "server-unavailable"),
    "half an answer": (
        Reply(200, {**JSON, "Content-Length": "99"}, CANARY.encode(), then="close"),
        "server-unavailable",
    ),
}
"""What the token endpoint answers, and the code of the Problem."""

PAGES = {"a secret": CLIENT_SECRET, "a parameter twice": "x&state=y", "a length": "x" * 16_384}
"""What the URL of the sign-in page has."""


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon that has the clients' secret and writes down all it can."""
    told = {"PLURNK_LOG_LEVEL": "debug", "PLURNK_LOG_FORMAT": "json"}
    async with running_daemon(tmp_path_factory.mktemp("daemon"), {**ENVIRONMENT, **told}) as daemon:
        yield daemon


@pytest.fixture(scope="module")
async def peer() -> AsyncGenerator[ScriptedHttp]:
    """A server that wants a sign-in, and its authorization server."""
    async with documents() as peer:
        challenge = f'Bearer error="invalid_token", error_description="{CANARY}"'
        peer.routes["/mcp"] = Reply(401, {"WWW-Authenticate": challenge})
        yield peer


async def attached(daemon: Daemon, workspace: str, peer: ScriptedHttp) -> dict[str, Any]:
    authorization = {"type": "oauth", "redirectUrl": REDIRECT, **CLIENT}
    server = {"name": "p", "transport": "http", "url": peer.url, "authorization": authorization}
    return await daemon.act(workspace, "workspace.mcp.attach", server=server)


@pytest.mark.parametrize(("reply", "code"), TOKENS.values(), ids=TOKENS.keys())
async def test_an_answer_of_the_token_endpoint_is_told_in_our_words_and_written_nowhere(
    daemon: Daemon, workspace: str, peer: ScriptedHttp, reply: Reply, code: str
) -> None:
    with anyio.fail_after(LIMIT):
        peer.routes["/token"] = reply
        asked = await attached(daemon, workspace, peer)
        [state] = parse_qs(urlsplit(asked["authorization"]["url"]).query)["state"]
        callback = f"{REDIRECT}?code={CANARY}-code&state={state}"
        told = [await daemon.act(workspace, "workspace.mcp.oauth.complete", name="p", callbackUrl=callback)]
        assert told[0]["code"] == code
        told.append(await daemon.act(workspace, "workspace.mcp.list"))
        assert told[1]["pending"] == told[1]["servers"] == []
    secrets = {"canary": CANARY, "client secret": CLIENT_SECRET}
    assert leaks_in(secrets, str(told).encode(), where="what the client was told") == []
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []


@pytest.mark.parametrize("shown", PAGES.values(), ids=PAGES.keys())
async def test_a_sign_in_page_that_cannot_be_shown_is_not_pending(
    daemon: Daemon, workspace: str, peer: ScriptedHttp, shown: str
) -> None:
    page = f"{peer.origin}/authorize?of={shown}"
    good, peer.routes[METADATA] = (
        peer.routes[METADATA],
        document(metadata(peer.origin, peer.origin, authorization_endpoint=page)),
    )
    with anyio.fail_after(LIMIT):
        told = await attached(daemon, workspace, peer)
        assert told["code"] == "oauth-metadata-invalid"
        assert (await daemon.act(workspace, "workspace.mcp.list"))["pending"] == []
    peer.routes[METADATA] = good
    assert CLIENT_SECRET not in str(told)
