"""oauth_errors.py: only what a standard defines is ever repeated."""

import pytest

from app.core.oauth_errors import KNOWN, known_error

pytestmark = pytest.mark.spec("oauth")


@pytest.mark.parametrize("code", sorted(KNOWN))
def test_a_code_of_a_standard_may_be_named(code: str) -> None:
    assert known_error(code) == code


@pytest.mark.parametrize(
    "code", [None, "", "Access_Denied", "access_denied ", "call +1-555", 7, ["access_denied"], {}]
)
def test_nothing_else_may(code: object) -> None:
    assert known_error(code) is None
