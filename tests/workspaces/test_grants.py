"""What was granted belongs to one definition, to the letter, and goes with its attachment."""

import pytest

from app.core.definitions import parse_definition
from app.workspaces.grants import Grants
from tests.support.sign_ins import Granted, oauth

pytestmark = pytest.mark.spec("oauth")


def test_a_grant_is_for_the_very_definition_it_was_given_to() -> None:
    grants, granted = Grants(), Granted(has_token=True)
    grants.keep(parse_definition(oauth()), granted)
    assert grants.of(parse_definition(oauth())) is granted
    assert grants.of(parse_definition(oauth(tools=[]))) is None
    assert grants.of(parse_definition(oauth("q"))) is None


def test_another_attachment_of_the_name_takes_the_place_of_the_one_before() -> None:
    grants = Grants()
    grants.keep(parse_definition(oauth()), Granted(has_token=True))
    assert grants.has_token
    grants.keep(parse_definition(oauth(tools=[])), None)
    assert not grants.has_token
    assert grants.of(parse_definition(oauth())) is None


def test_only_a_token_counts_as_one() -> None:
    grants, granted = Grants(), Granted()
    grants.keep(parse_definition(oauth()), granted)
    assert not grants.has_token
    granted.has_token = True
    assert grants.has_token
    grants.forget("p")
    grants.forget("p")
    assert not grants.has_token
