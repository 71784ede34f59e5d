"""The mask of secret values. SPEC §references."""

import base64
import gc
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.core.masking import MASKED, PASSING_CHARACTERS_MAX, PASSING_MAX, SECRET_MIN, Mask

unicode = st.characters(exclude_categories=["Cs"])
secrets = st.text(unicode, min_size=SECRET_MIN, max_size=40)
surroundings = st.text(unicode, max_size=12)


def lower_hex(text: str) -> str:
    head, *rest = quote(text, safe="").split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def every_byte_escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def every_unit_escaped(text: str) -> str:
    data = text.encode("utf-16-be")
    return "".join(f"\\u{data[index]:02x}{data[index + 1]:02X}" for index in range(0, len(data), 2))


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes kept": quote,
    "percent, lower hex": lower_hex,
    "percent, every byte": every_byte_escaped,
    "form": quote_plus,
    "JSON ascii": lambda text: json.dumps(text)[1:-1],
    "JSON raw": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON, every unit": every_unit_escaped,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON, solidus": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
}


@pytest.mark.spec("references")
@pytest.mark.parametrize("encode", [pytest.param(encode, id=name) for name, encode in ENCODINGS.items()])
@given(secret=secrets, before=surroundings, after=surroundings)
def test_a_value_is_masked_however_it_is_escaped(
    encode: Callable[[str], str], secret: str, before: str, after: str
) -> None:
    shown = encode(secret)
    assume(shown not in MASKED)
    masked = Mask([secret]).mask(f"{before} {shown} {after}")
    assert MASKED in masked
    assert shown.strip('"\\') not in masked or shown.strip('"\\') in f"{before} {MASKED} {after}"


@pytest.mark.spec("references")
@given(
    secret=secrets,
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
    urlsafe=st.booleans(),
    pad=st.booleans(),
)
def test_no_digit_of_a_value_in_base64_survives_at_any_alignment(
    secret: str, before: bytes, after: bytes, urlsafe: bool, pad: bool
) -> None:
    plain = secret.encode()
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    digits = encode(before + plain + after).decode()
    shown = digits if pad else digits.rstrip("=")
    masked = Mask([secret]).mask(f"<{shown}>")
    assert MASKED in masked
    first, last = len(before) * 8 // 6, -(-(len(before) + len(plain)) * 8 // 6)
    kept_before, kept_after = digits[:first], digits[last:] if pad else digits[last:].rstrip("=")
    assume(masked.count(MASKED) == 1)
    head, tail = masked.split(MASKED)
    assert f"<{kept_before}".startswith(head)
    assert f"{kept_after}>".endswith(tail)


@pytest.mark.spec("references")
@given(secrets, st.text(unicode, max_size=200))
def test_a_text_without_the_value_is_left_as_it_is(secret: str, text: str) -> None:
    others = [encode(secret) for encode in ENCODINGS.values()]
    assume(all(other not in text for other in others))
    assume(not any(character in text for character in "%\\"))
    assert Mask([secret]).mask(text) == text


@pytest.mark.spec("references")
@given(st.text(), st.text(max_size=SECRET_MIN - 1))
def test_short_values_are_not_searched_for(text: str, short: str) -> None:
    assert Mask([short]).mask(text + short) == text + short


@pytest.mark.spec("references")
def test_the_longest_of_overlapping_values_is_masked_whole() -> None:
    mask = Mask(["secret-1", "secret-1-and-more", "more-than"])
    assert mask.mask("a secret-1-and-more-than b secret-1 c") == "a *** b *** c"
    assert Mask(["the-whole-value", "whole-va"]).mask("<the-whole-value>") == "<***>"


@pytest.mark.spec("references")
def test_everything_around_a_value_stays() -> None:
    mask = Mask()
    mask.add({"canary-t"})
    mask.add(["canary-t", "höchst geheim"])
    assert mask.mask('{"echo":"canary-t","n":"caf\\u00e9"} 100%') == '{"echo":"***","n":"caf\\u00e9"} 100%'
    assert mask.mask("x h%C3%B6chst+geheim y h\\u00f6chst geheim z") == "x *** y *** z"
    assert mask.mask("\ud800 canary-t \udfff") == "\ud800 *** \udfff"
    assert mask.mask("Basic " + base64.b64encode(b"me:canary-t").decode()) == "Basic bWU6***="


@pytest.mark.spec("references")
def test_a_mask_shows_no_value() -> None:
    assert repr(Mask(["canary-t"])) == "Mask(1 values)"


@pytest.mark.spec("references")
def test_a_value_with_a_lone_surrogate_is_masked_too() -> None:
    assert Mask(["canary-\udcff-t"]).mask("<canary-\udcff-t>") == "<***>"


@pytest.mark.spec("references")
def test_what_passes_is_masked_while_its_owner_lives_and_leaves_nothing_behind() -> None:
    mask = Mask(["canary-of-the-operator"])
    first, second = mask.passing(), mask.passing()
    first.add("canary 1", "canary+1", "canary-of-the-operator", None, "short")
    second.add("canary 1")
    text = "canary 1, canary-of-the-operator"
    assert (mask.mask(text), repr(mask), repr(first)) == (
        "***, ***",
        "Mask(3 values)",
        "PassingSecrets(3 values)",
    )
    del first
    gc.collect()
    second.add("canary-3")
    assert (mask.mask(f"{text}, canary-3"), repr(mask)) == ("***, ***, ***", "Mask(3 values)")
    del second
    gc.collect()
    mask.add(["canary-of-another"])
    assert (mask.mask(f"{text}, canary-3"), repr(mask)) == ("canary 1, ***, canary-3", "Mask(2 values)")
    shown = base64.b64encode(b"canary 1").decode()
    assert mask.mask(shown) == shown


@pytest.mark.spec("references")
def test_owners_that_are_gone_leave_nothing_where_nothing_is_secret_either() -> None:
    mask = Mask()
    for _ in range(3):
        mask.passing()
        gc.collect()
    owner = mask.passing()
    assert (len(mask._abandoned), repr(owner)) == (0, "PassingSecrets(0 values)")


@pytest.mark.spec("references")
def test_of_what_passes_the_latest_are_known_and_what_is_used_again_is_late() -> None:
    mask = Mask()
    owner = mask.passing()
    owner.add("kept-secret", *(f"token-nr-{number}" for number in range(PASSING_MAX - 1)), "kept-secret")
    owner.add("token-nr-new")
    assert mask.mask("kept-secret token-nr-0, token-nr-2, token-nr-new") == "*** token-nr-0, ***, ***"
    assert repr(mask) == f"Mask({PASSING_MAX} values)"
    halves = [letter.join(map(str, range(99_999)))[: PASSING_CHARACTERS_MAX // 2] for letter in "ab"]
    owner.add(*halves, "x" * (PASSING_CHARACTERS_MAX + 1))
    assert repr(owner) == "PassingSecrets(2 values)"
    assert [mask.mask(half) for half in halves] == ["***", "***"]


@pytest.mark.spec("oauth")
@pytest.mark.parametrize("encode", [str, quote, quote_plus, every_byte_escaped])
def test_a_url_that_shows_what_passes_is_known(encode: Callable[[str], str]) -> None:
    owner = Mask().passing()
    owner.add("a/secret of mine")
    assert owner.are_in(f"https://as.example/?t={encode('a/secret of mine')}&x=y")
    assert not owner.are_in("https://as.example/?t=a/secret")
