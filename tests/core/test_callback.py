"""callback.py: which URLs are callbacks of a redirect URL, and what they carry."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.callback import PARAMETERS_MAX, Callback, CallbackError, read_callback

pytestmark = pytest.mark.spec("oauth")

REDIRECT = "http://127.0.0.1:7777/cb"
GOOD: dict[str, tuple[str, str, Callback]] = {
    "a code": (f"{REDIRECT}?code=c&state=s", REDIRECT, Callback("s", "c")),
    "with its issuer": (
        f"{REDIRECT}?iss=https%3A%2F%2Fa.example%2F&code=c&state=s",
        REDIRECT,
        Callback("s", "c", None, "https://a.example/"),
    ),
    "an error": (
        f"{REDIRECT}?error=access_denied&error_description=x&state=s",
        REDIRECT,
        Callback("s", None, "access_denied"),
    ),
    "neither": (f"{REDIRECT}?state=s", REDIRECT, Callback("s")),
    "both": (f"{REDIRECT}?state=s&code=c&error=e", REDIRECT, Callback("s", "c", "e")),
    "what is empty is absent": (f"{REDIRECT}?state=s&code=&iss=&error=", REDIRECT, Callback("s")),
    "what is unknown is passed over": (
        f"{REDIRECT}?state=s&code=c&session_state=1",
        REDIRECT,
        Callback("s", "c"),
    ),
    "decoded as a form": (f"{REDIRECT}?state=a+b%2B&code=%C3%A9", REDIRECT, Callback("a b+", "é")),
    "pasted with blanks around": (f"  {REDIRECT}?code=c&state=s\n", REDIRECT, Callback("s", "c")),
    "case of scheme and host": ("HTTP://LocalHost:1/cb?state=s", "http://localhost:1/cb", Callback("s")),
    "the default port": ("https://a.example/cb?state=s", "https://a.example:443/cb", Callback("s")),
    "the path that a browser adds": ("https://a.example/?state=s", "https://a.example", Callback("s")),
    "the redirect URL's own query": (
        f"{REDIRECT}?code=c&tenant=1&state=s",
        f"{REDIRECT}?tenant=1",
        Callback("s", "c"),
    ),
    "IPv6": ("http://[::1]:1/cb?state=s", "http://[::1]:1/cb", Callback("s")),
}

BAD: dict[str, tuple[str, str]] = {
    "another scheme": ("https://127.0.0.1:7777/cb?state=s", REDIRECT),
    "a URL that no browser keeps": (f"{REDIRECT}?state=s&code={'c' * 32_768}", REDIRECT),
    "another host": ("http://localhost:7777/cb?state=s", REDIRECT),
    "another port": ("http://127.0.0.1:7778/cb?state=s", REDIRECT),
    "no port": ("http://127.0.0.1/cb?state=s", REDIRECT),
    "another path": ("http://127.0.0.1:7777/cb/?state=s", REDIRECT),
    "a path in another case": ("http://127.0.0.1:7777/CB?state=s", REDIRECT),
    "another host behind user information": ("http://127.0.0.1:7777@evil.example/cb?state=s", REDIRECT),
    "user information": ("http://me@127.0.0.1:7777/cb?state=s", REDIRECT),
    "a fragment": (f"{REDIRECT}?state=s#x", REDIRECT),
    "an empty fragment": (f"{REDIRECT}?state=s#", REDIRECT),
    "an implicit answer": (f"{REDIRECT}#state=s&access_token=t", REDIRECT),
    "two states": (f"{REDIRECT}?state=s&state=s", REDIRECT),
    "two codes": (f"{REDIRECT}?state=s&code=a&code=b", REDIRECT),
    "two issuers, one empty": (f"{REDIRECT}?state=s&iss=&iss=https://a.example", REDIRECT),
    "two of an unknown parameter": (f"{REDIRECT}?state=s&x=1&x=2", REDIRECT),
    "no state": (f"{REDIRECT}?code=c", REDIRECT),
    "an empty state": (f"{REDIRECT}?code=c&state=", REDIRECT),
    "no query": (REDIRECT, REDIRECT),
    "without the redirect URL's query": (f"{REDIRECT}?state=s", f"{REDIRECT}?tenant=1"),
    "with another value in it": (f"{REDIRECT}?tenant=2&state=s", f"{REDIRECT}?tenant=1"),
    "with a second value for it": (f"{REDIRECT}?tenant=1&tenant=2&state=s", f"{REDIRECT}?tenant=1"),
    "no text": ("", REDIRECT),
    "no URL": ("code=c&state=s", REDIRECT),
    "a port that is none": ("http://127.0.0.1:x/cb?state=s", REDIRECT),
    "a host that is none": ("http://[::1/cb?state=s", REDIRECT),
    "a line break inside": ("http://127.0.0.1:7777/c\nb?state=s", REDIRECT),
    "bytes that are no text": (f"{REDIRECT}?state=s&code=%ff", REDIRECT),
    "parameters without end": (f"{REDIRECT}?state=s{'&a=1' * PARAMETERS_MAX}", REDIRECT),
}


@pytest.mark.parametrize(("url", "redirect", "expected"), GOOD.values(), ids=GOOD.keys())
def test_a_callback_is_read(url: str, redirect: str, expected: Callback) -> None:
    assert read_callback(url, redirect) == expected


@pytest.mark.parametrize(("url", "redirect"), BAD.values(), ids=BAD.keys())
def test_another_url_is_refused_without_a_word_of_it(url: str, redirect: str) -> None:
    with pytest.raises(CallbackError) as raised:
        read_callback(url, redirect)
    assert raised.value.reason.startswith("it")
    for word in ("evil", "tenant=", "access_token", "127.0.0.1"):
        assert word not in raised.value.reason


def test_a_code_is_not_shown() -> None:
    assert "c0de" not in repr(Callback("s", "c0de"))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(state=TEXT, code=TEXT, iss=TEXT)
def test_what_a_server_encodes_comes_back_to_the_letter(state: str, code: str, iss: str) -> None:
    url = f"{REDIRECT}?{urlencode({'code': code, 'iss': iss, 'state': state})}"
    assert read_callback(url, REDIRECT) == Callback(state, code, None, iss)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"{REDIRECT}?{text}", f"http://{text}"):
        try:
            read_callback(url, REDIRECT)
        except CallbackError:
            continue
