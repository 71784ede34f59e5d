"""Where a browser would go, and a word of doubt where the name can look like another; more in ``test_elicitation``."""

import pytest

from app.core.web_host import shown_host, web_host

pytestmark = pytest.mark.spec("calls", "oauth")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.example:8443/x?y#z", "a.example"),
        ("http://[::1]/x", "::1"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://a.example@b.example/", None),
        ("https://a.example:0/", None),
        ("https://a.example:x/", None),
        ("https:///x", None),
        ("https://a%2eexample/", None),
        ("https://a.example\\@b.example/", None),
        ("javascript:alert(1)", None),
        ("https://a.example/\u202e", None),
        (" https://a.example/", None),
    ],
)
def test_a_host_is_shown_only_where_a_person_can_judge_it(url: str, host: str | None) -> None:
    assert web_host(url) == host


def test_a_name_in_punycode_is_shown_with_doubt() -> None:
    assert shown_host("a.example") == "a.example"
    assert "punycode" in shown_host("xn--pple-43d.com")
