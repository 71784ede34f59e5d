"""What the cases expect of signing in: what the peer was asked, and what a person is shown. SPEC §oauth."""

import base64
from urllib.parse import urlsplit

from tests.faults.eventual import Faults, Trace, many
from tests.faults.judging import allowed_ms
from tests.faults.oauth_peer import OAuthPeer
from tests.faults.signing_in import authorization_url, authorization_urls, query_of
from tests.faults.world import Json, World


def _peer(world: World) -> OAuthPeer:
    assert world.oauth is not None
    return world.oauth


async def param(world: World, told: Json) -> Faults:
    """Every authorization URL, or every token request, has the parameter to the letter."""
    endpoint, name, value = told["param"]
    urls = [query_of(url) for url in authorization_urls(world)]
    asked = urls if endpoint == "authorize" else _peer(world).asked.get(endpoint, [])
    if not asked or any(each.get(name) != value for each in asked):
        yield f"{[each.get(name) for each in asked]}: {world.last.shown[:300]}"


async def fetched(world: World, told: Json) -> Faults:
    for path in told["fetched"]:
        if path not in _peer(world).paths:
            yield f"{path} was not: {_peer(world).paths}"


async def not_fetched(world: World, told: Json) -> Faults:
    """The host is of nobody: a daemon that tried would have failed, and have said so."""
    if told["not_fetched"] in world.log or told["not_fetched"] in world.last.shown:
        yield "it was tried"


async def fetch_order(world: World, told: Json) -> Faults:
    found = [path for path in _peer(world).paths if path in told["fetch_order"]]
    if found != told["fetch_order"]:
        yield f"{_peer(world).paths}"


async def no_request_to(world: World, _told: Json) -> Faults:
    for endpoint in ("authorize", "token"):
        if _peer(world).count(endpoint):
            yield f"{endpoint} was asked"
    async for fault in no_auth_url(world, {}):
        yield fault


async def no_auth_url(world: World, _told: Json) -> Faults:
    for url in authorization_urls(world):
        yield f"{url} was shown"


async def peer_count(world: World, told: Json) -> Faults:
    for name, count in told["peer_count"].items():
        if _peer(world).count(name) != int(count):
            yield f"{name} came {_peer(world).count(name)} times"


async def peer_paths_lack(world: World, told: Json) -> Faults:
    if told["peer_paths_lack"] in _peer(world).paths:
        yield f"{_peer(world).paths}"


async def problem_4xx(world: World, _told: Json) -> Faults:
    if not 400 <= world.last.problem.get("status", 0) < 500:
        yield world.last.shown[:300]


async def auth_url_path(world: World, told: Json) -> Faults:
    found = [urlsplit(url).path for url in authorization_urls(world)]
    if found != [told["auth_url_path"]]:
        yield f"{found}"


async def basic_decoded(world: World, told: Json) -> Faults:
    for header in _peer(world).basic or [""]:
        scheme, _, value = header.partition(" ")
        if scheme != "Basic" or base64.b64decode(value).decode() != told["basic_decoded"]:
            yield f"{header!r}"


async def scope_requested(world: World, told: Json) -> Faults:
    found = [set(query_of(url).get("scope", "").split()) for url in authorization_urls(world)]
    if found != [set(scopes.split()) for scopes in told["scope_requested"]]:
        yield f"{found}"


async def auth_rounds_max(world: World, told: Json) -> Faults:
    if len(authorization_urls(world)) > told["auth_rounds_max"]:
        yield f"{len(authorization_urls(world))}"


async def ok_count(world: World, told: Json) -> Faults:
    found = world.of("call")
    if sum(record.ok for record in found) != told["ok_count"]:
        yield f"{[record.shown[:300] for record in found if not record.ok]}"


async def pending_authorization(world: World, _told: Json) -> Faults:
    """The last call asks for a sign-in: as its own question, or the server's state says so."""
    states = {each["name"]: each["state"] for each in (await world.list("w1"))["servers"]}
    if authorization_url(world.last) is None and states.get("p") != "authorization-required":
        yield f"{states}: {world.last.shown[:400]}"


async def peer2_lacks(world: World, told: Json) -> Faults:
    assert world.oauth2
    came = "".join(f"{seen.path} {seen.raw_headers} {seen.body!r}" for seen in world.http2.seen)
    # Credentials that were registered beforehand belong to one issuer: the other one is not even asked.
    if not came and "oauth-metadata-invalid" not in world.last.shown:
        yield f"nobody looked at the other authorization server: {world.last.shown[:400]}"
    for secret in many(told["peer2_lacks"]):
        if secret.startswith("$") or not secret:
            yield f"nobody knows {secret}"
        elif secret in came:
            yield f"{secret} came"


async def no_connect_to(world: World, told: Json) -> Faults:
    """A connect to an address that never answers lasts until its own limit; a refusal does not."""
    if world.last.milliseconds > allowed_ms(1000):
        yield f"{told['no_connect_to']} took {world.last.milliseconds:.0f} ms"


OAUTH: dict[str, Trace] = {
    "param": param,
    "fetched": fetched,
    "not_fetched": not_fetched,
    "fetch_order": fetch_order,
    "no_request_to": no_request_to,
    "no_auth_url": no_auth_url,
    "peer_count": peer_count,
    "peer_paths_lack": peer_paths_lack,
    "problem_4xx": problem_4xx,
    "auth_url_path": auth_url_path,
    "basic_decoded": basic_decoded,
    "scope_requested": scope_requested,
    "auth_rounds_max": auth_rounds_max,
    "ok_count": ok_count,
    "pending_authorization": pending_authorization,
    "peer2_lacks": peer2_lacks,
    "no_connect_to": no_connect_to,
}
