"""The steps of the cases in which a person signs in, or somebody hands a callback over. SPEC §oauth."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from tests.faults.asking import resumed
from tests.faults.world import Json, Record, World
from tests.support.browser import callback_of
from tests.support.scripted_http import ECHO, result

REDIRECT = "http://127.0.0.1:7777/cb"
ROUNDS_MAX = 5
"""More sign-ins than one action may ask for."""

Management = Callable[..., Awaitable[Record]]


def authorization_url(record: Record) -> str | None:
    """Return the authorization URL that a step ended with."""
    for interrupt in record.interrupts:
        if interrupt["reason"] == "plurnk:authorization":
            return interrupt["metadata"]["plurnk"]["url"]
    body = record.body if isinstance(record.body, dict) else {}
    return body.get("authorization", {}).get("url")


def authorization_urls(world: World) -> list[str]:
    """Return every authorization URL that was shown, in order."""
    return world.saved.setdefault("urls", [])


def query_of(url: str) -> dict[str, str]:
    """Return the parameters of an authorization URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def note_url(world: World, record: Record, name: str | None = None) -> None:
    """Keep the URL that a step ended with, its state as the word ``state`` and as the name that the case gives."""
    url = authorization_url(record)
    if url is None or url in authorization_urls(world):
        return
    authorization_urls(world).append(url)
    state = query_of(url)["state"]
    world.words["state"] = state
    if name is not None:
        world.words[f"{name}.state"] = state


async def consent(world: World, management: Management) -> None:
    """Send the browser to the URL that was shown last, and hand its callback over as the daemon asked for it."""
    record = [each for each in world.records if authorization_url(each) in authorization_urls(world)[-1:]][-1]
    callback = await callback_of(authorization_urls(world)[-1])
    if record.interrupts:
        assert await resumed(world, record, payload={"callbackUrl": callback})
        note_url(world, record)
        return
    answer = await management(world, "oauth.complete", "w1", name="p", callbackUrl=callback)
    note_url(world, answer)


async def sign_in(world: World, management: Management, server: Json) -> None:
    """Attach the server that a case of calls begins with, and consent; no step counts this."""
    tools = [{**ECHO, "name": name} for name in ("echo", *world.case["peer"].get("scopes_by_tool", {}))]
    world.http.answers["tools/list"] = result({"tools": tools})
    note_url(world, await management(world, "attach", "w1", server=server))
    for _ in range(ROUNDS_MAX):
        if not authorization_url(world.records[-1]):
            break
        await consent(world, management)
    assert world.records[-1].ok, world.records[-1].shown
    world.records.clear()
    authorization_urls(world).clear()
    if world.oauth and world.oauth.told.get("expired"):
        world.oauth.expire()


def peer_now(world: World, told: Json) -> None:
    """Let the peer take no token any more, and say something else from now on."""
    assert world.oauth
    world.oauth.told = {**world.oauth.told, **told}
    world.oauth.move()
