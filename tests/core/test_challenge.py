"""challenge.py: a Bearer challenge as servers write it, careful ones, careless ones and hostile ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.challenge import BearerChallenge, parse_challenge

pytestmark = pytest.mark.spec("oauth")

PRM = "https://a.example/prm"
OTHER = "https://b.example/prm"
FOUND = BearerChallenge(resource_metadata=(PRM,))

HEADERS: dict[str, tuple[str | None, BearerChallenge]] = {
    "no header": (None, BearerChallenge()),
    "an empty header": ("", BearerChallenge()),
    "the scheme alone": ("Bearer", BearerChallenge()),
    "any order, any case": (
        f'bEARER Scope="b a b", ERROR="insufficient_scope", Resource_Metadata="{PRM}"',
        BearerChallenge((PRM,), ("b", "a"), "insufficient_scope"),
    ),
    "blanks around the equals sign": (f'Bearer resource_metadata = "{PRM}"', FOUND),
    "no blank after a comma": (
        f'Bearer error="invalid_token",resource_metadata="{PRM}"',
        BearerChallenge((PRM,), None, "invalid_token"),
    ),
    "no comma between parameters": (f'Bearer realm="r" resource_metadata="{PRM}"', FOUND),
    "empty list elements": (f', Bearer ,, resource_metadata="{PRM}",', FOUND),
    "a token for a value": ("Bearer error=invalid_token", BearerChallenge(error="invalid_token")),
    "an unquoted URL": (f"Bearer resource_metadata={PRM}, error=x", BearerChallenge((PRM,), None, "x")),
    "quoted pairs": (r'Bearer error="in\valid\_\"x"', BearerChallenge(error='invalid_"x')),
    "the last of two counts": ('Bearer error="x", error="y"', BearerChallenge(error="y")),
    "the last of two places first": (
        f'Bearer resource_metadata="{OTHER}", resource_metadata="{PRM}", resource_metadata="{OTHER}"',
        BearerChallenge((OTHER, PRM)),
    ),
    "a place that the second Bearer challenge names": (
        f'Bearer error="insufficient_scope", scope="a", Bearer resource_metadata="{PRM}"',
        BearerChallenge((PRM,), ("a",), "insufficient_scope"),
    ),
    "places without end": (
        "Bearer " + ", ".join(f'resource_metadata="https://{n}.example"' for n in range(9)),
        BearerChallenge(tuple(f"https://{n}.example" for n in (8, 7, 6, 5))),
    ),
    "an empty scope is none": ('Bearer scope=""', BearerChallenge()),
    "blanks are no scope": ('Bearer scope="  "', BearerChallenge()),
    "what is no scope name is left out": (
        'Bearer scope="a b\\"c d\u00e9 e"',
        BearerChallenge(scope=("a", "e")),
    ),
    "an empty URL is none": ('Bearer resource_metadata=""', BearerChallenge()),
    "a parameter inside quotes": (
        'Bearer error_description="see resource_metadata=\\"http://evil.example/\\", scope=x", error="e"',
        BearerChallenge(error="e"),
    ),
    "a scheme inside quotes": (
        f'Basic realm="x, Bearer resource_metadata=y", Bearer resource_metadata="{PRM}"',
        FOUND,
    ),
    "quotes that never end": (
        f'Bearer error="e", realm="x, resource_metadata={PRM}',
        BearerChallenge(error="e"),
    ),
    "quotes that end in a backslash": (f'Bearer realm="=, resource_metadata={PRM}\\', BearerChallenge()),
    "another scheme before": (
        f'Basic realm="a", resource_metadata="b", Bearer resource_metadata="{PRM}"',
        FOUND,
    ),
    "another scheme after": (f'Bearer resource_metadata="{PRM}", DPoP error="e", scope="s"', FOUND),
    "a token68 before": (f'Negotiate YWJj==, Bearer resource_metadata="{PRM}"', FOUND),
    "a token68 of other bytes before": (f'Negotiate a/b+c==, Bearer resource_metadata="{PRM}"', FOUND),
    "a bare scheme before": (f'Negotiate, Bearer resource_metadata="{PRM}"', FOUND),
    "the first of two Bearer challenges": (f'Bearer resource_metadata="{PRM}", Bearer error="x"', FOUND),
    "no Bearer challenge": ('Basic realm="x", DPoP algs="ES256"', BearerChallenge()),
    "a word that begins like it": ('BearerX error="e"', BearerChallenge()),
    "a value that is missing": ('Bearer realm=, error="e"', BearerChallenge(error="e")),
    "bytes of nobody's grammar": ('Bearer @@ (;), error="e"', BearerChallenge(error="e")),
    "a quoted text behind a value": ('Bearer realm=a"b, scope=c", error="e"', BearerChallenge(error="e")),
}


@pytest.mark.parametrize(("header", "expected"), HEADERS.values(), ids=HEADERS.keys())
def test_a_challenge_is_read_as_rfc_9110_means_it(header: str | None, expected: BearerChallenge) -> None:
    assert parse_challenge(header) == expected


@given(st.text())
def test_no_text_fails(text: str) -> None:
    parse_challenge(text)
    parse_challenge(f"Bearer {text}")


@given(
    url=st.text(st.characters(min_codepoint=1, max_codepoint=0x7E), min_size=1),
    noise=st.text(),
    case=st.sampled_from(["bearer", "Bearer", "BEARER"]),
)
def test_what_is_quoted_comes_back_and_nothing_beside_it_counts(url: str, noise: str, case: str) -> None:
    header = (
        f"{case} realm={quoted(noise)}, Resource_Metadata={quoted(url)}, error_description={quoted(noise)}"
    )
    assert parse_challenge(header) == BearerChallenge(resource_metadata=(url,))


@pytest.mark.parametrize("piece", ['"\\', "a=", "Bearer a ", '"', "=", "x,"])
def test_a_header_of_any_length_is_read_in_time_that_grows_with_it(piece: str) -> None:
    parse_challenge("Bearer " + piece * 20_000)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
