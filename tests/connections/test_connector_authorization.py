"""connector.py: who has to sign in, when that is found out, and what is asked of whom until then. SPEC §oauth."""

import pytest

from app.core.answers import Result
from app.ports import AuthorizationDemanded
from tests.support.authorized_house import authorized_house, complete, echo, guard
from tests.support.scripted_http import Reply, scripted_http
from tests.support.subscriptions import discovered


@pytest.mark.spec("oauth")
@pytest.mark.parametrize("path", ["", "/tenant"])
async def test_who_has_to_sign_in_is_asked_where_somebody_asked_for_it_and_nothing_stays_open(
    path: str,
) -> None:
    async with authorized_house(path) as home:
        with pytest.raises(AuthorizationDemanded) as raised:
            await home.open(is_explicit=False)
        assert (raised.value.server, raised.value.attempt) == ("p", None)
        assert (home.issuer.asked, home.server.metadata_requests) == ([], [])
        attempt = await home.demanded()
        assert attempt.url.startswith(f"{home.issuer.issuer}/authorize?")
        assert [asked.endpoint for asked in home.issuer.asked] == ["metadata", "register"]
        await complete(attempt)
        connection = await home.open(authorization=attempt.authorization)
        assert connection.authorization is attempt.authorization
        heir = await home.open(authorization=connection.authorization, is_explicit=False)
        assert await connection.retire() is None
        assert isinstance(await echo(heir), Result)
        assert home.issuer.count("token") == 1
        assert (await home.refused({"type": "bearer", "token": "${SECRET}"})).code == "authorization-refused"


@pytest.mark.spec("oauth")
async def test_a_challenge_in_a_403_or_in_the_middle_of_a_preparation_is_a_demand_too() -> None:
    bearer = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="a"'}
    for method, reply in (
        ("server/discover", Reply(403, bearer)),
        ("tools/list", Reply(401, {"WWW-Authenticate": "Bearer"})),
        ("tools/list", Reply(403, bearer)),
    ):
        async with scripted_http() as peer, authorized_house() as home:
            guard(peer, home.issuer)
            peer.answers |= {"server/discover": discovered(), method: reply}
            attempt = await home.demanded(url=peer.url)
            assert ("scope=a" in attempt.url) is (reply.status == 403)
            peer.answers[method] = Reply(403)
            assert (await home.refused(url=peer.url)).code == "authorization-refused"


@pytest.mark.spec("oauth", "security")
@pytest.mark.parametrize(
    "named", ["http://169.254.169.254/x", "http://[::ffff:169.254.169.254]/x", "http://2130706433/x"]
)
async def test_metadata_at_an_address_that_no_server_may_name_is_not_asked_for(named: str) -> None:
    challenge = Reply(401, {"WWW-Authenticate": f'Bearer resource_metadata="{named}"'})
    async with scripted_http({"server/discover": challenge}) as peer, authorized_house() as home:
        assert (await home.refused(url=peer.url)).code == "oauth-metadata-invalid"
        assert len(peer.seen) == 1
