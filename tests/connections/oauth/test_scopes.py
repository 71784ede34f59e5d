"""scopes.py: what is asked for, by what the challenge, the definition and the two documents say."""

from typing import TypeAlias

import pytest

from app.connections.oauth.scopes import scopes_to_ask
from app.core.challenge import BearerChallenge
from app.core.definitions import ClientCredentials, InteractiveOAuth
from tests.support.oauth_documents import PERSON as UNDEFINED
from tests.support.oauth_documents import authorization_server, machine

pytestmark = pytest.mark.spec("oauth")

PERSON = UNDEFINED.model_copy(update={"scope": "d:1 d:2"})
MACHINE = machine(scope="d:1")
PLAIN = BearerChallenge()
ASKING = BearerChallenge(scope=("c:1", "c:2"))
LISTED, OFFLINE = ("r:1", "r:2"), ("x", "offline_access")

Names: TypeAlias = tuple[str, ...]
Config: TypeAlias = InteractiveOAuth | ClientCredentials
CASES: dict[str, tuple[BearerChallenge, Config, Names, Names, Names, Names]] = {
    # challenge, definition, the resource's, the authorization server's, before -> asked
    "the challenge first": (ASKING, PERSON, LISTED, (), (), ("c:1", "c:2")),
    "then the definition": (PLAIN, PERSON, LISTED, (), (), ("d:1", "d:2")),
    "then the resource": (PLAIN, UNDEFINED, LISTED, ("as:1",), (), LISTED),
    "none where none is known": (PLAIN, UNDEFINED, (), ("as:1",), (), ()),
    "offline access where it is listed": (
        ASKING,
        UNDEFINED,
        (),
        OFFLINE,
        (),
        ("c:1", "c:2", "offline_access"),
    ),
    "not alone": (PLAIN, UNDEFINED, (), OFFLINE, (), ()),
    "not twice": (
        BearerChallenge(scope=("offline_access", "c")),
        UNDEFINED,
        (),
        OFFLINE,
        (),
        ("offline_access", "c"),
    ),
    "not where only the resource lists it": (PLAIN, UNDEFINED, ("r",), (), (), ("r",)),
    "not for a machine": (PLAIN, MACHINE, (), OFFLINE, (), ("d:1",)),
    "a step up adds": (ASKING, PERSON, LISTED, (), ("a", "c:2"), ("a", "c:2", "c:1")),
    "a step up that names nothing asks again": (PLAIN, PERSON, LISTED, (), ("a",), ("a",)),
    "a machine steps up": (ASKING, MACHINE, (), OFFLINE, ("d:1",), ("d:1", "c:1", "c:2")),
}


@pytest.mark.parametrize(
    ("challenge", "config", "resource", "supported", "before", "asked"), CASES.values(), ids=CASES.keys()
)
def test_the_scopes_that_are_asked_for(
    challenge: BearerChallenge,
    config: Config,
    resource: Names,
    supported: Names,
    before: Names,
    asked: Names,
) -> None:
    server = authorization_server("https://a.example", resource_scopes=resource, scopes_supported=supported)
    assert scopes_to_ask(server, challenge, config, before=before) == asked
