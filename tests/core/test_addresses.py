"""Addresses: what is one, and that they come back byte for byte. SPEC §addresses."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.addresses import (
    Address,
    Document,
    PromptGet,
    PromptIndex,
    ResourceIndex,
    ResourceRead,
    document_address,
    parse,
    printed,
    prompt_address,
    resource_address,
)
from app.core.problems import ParameterInvalid, ParameterRequired

pytestmark = pytest.mark.spec("addresses")


@pytest.mark.parametrize(
    "uri, address",
    [
        ("git:///", ResourceIndex("git")),
        ("git:///resources", ResourceIndex("git")),
        ("git:///prompts", PromptIndex("git")),
        ("worker://plurnk/docs/git.md", Document("git")),
        ("worker://plurnk/docs/a-1.md", Document("a-1")),
        ("git:///resources/a%3Ab", ResourceRead("git", "a:b")),
        ("git:///resources/a:b", ResourceRead("git", "a:b")),
        ("git:///resources/file:///x%20y", ResourceRead("git", "file:///x y")),
        ("git:///resources/a+b", ResourceRead("git", "a+b")),
        ("git:///resources/a%2Bb%2fc", ResourceRead("git", "a+b/c")),
        ("git:///resources/%2525", ResourceRead("git", "%25")),
        ("git:///resources/..%2F..", ResourceRead("git", "../..")),
        ("git:///resources/%C3%A9é", ResourceRead("git", "éé")),
        ("git:///resources/%00", ResourceRead("git", "\0")),
        ("git:///resources/a&b=c", ResourceRead("git", "a&b=c")),
        ("git:///prompts/review", PromptGet("git", "review", {})),
        ("git:///prompts/review?", PromptGet("git", "review", {})),
        ("git:///prompts/a%2Fb%3F?x=1&y=", PromptGet("git", "a/b?", {"x": "1", "y": ""})),
        ("git:///prompts/p?q=a=b+c%26", PromptGet("git", "p", {"q": "a=b+c&"})),
        ("git:///prompts/p?q=a?b/c", PromptGet("git", "p", {"q": "a?b/c"})),
        ("git:///prompts/p?%3D=%3D", PromptGet("git", "p", {"=": "="})),
    ],
)
def test_an_address_names_what_is_read(uri: str, address: Address) -> None:
    assert parse(uri) == address


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "git",
        "git:",
        "git://",
        "git://host/resources",
        "git:////",
        "git:///tools",
        "git:///Resources",
        "git:///resources/",
        "git:///prompts/",
        "git:///prompts/?a=1",
        "git:///resources?x=1",
        "git:///prompts?x=1",
        "git:///?",
        "git:///resources/a?b",
        "git:///resources/a#b",
        "git:///prompts/a#b",
        "git:///resources#",
        "git:///resources/%",
        "git:///resources/%2",
        "git:///resources/%zz",
        "git:///resources/%u00e9",
        "git:///resources/%FF",
        "git:///resources/%C3",
        "git:///resources/%ED%A0%80",
        "git:///resources/\ud800",
        "git:///prompts/p?a",
        "git:///prompts/p?=1",
        "git:///prompts/p?a=1&",
        "git:///prompts/p?a=1&&b=2",
        "git:///prompts/p?a=%",
        "GIT:///resources",
        "1git:///resources",
        "worker:///resources",
        "plurnk:///resources",
        "https:///resources",
        "https://example.com/x",
        "file:///etc/passwd",
        f"{'g' * 65}:///",
        " git:///",
        "worker://plurnk/docs/git",
        "worker://plurnk/docs/.md",
        "worker://plurnk/docs/GIT.md",
        "worker://plurnk/docs/worker.md",
        "worker://plurnk/docs/git.md?x",
        "worker://plurnk/docs/git.md#x",
        "worker://plurnk/docs/a/b.md",
        "worker://other/docs/git.md",
        5,
        ["git:///"],
        b"git:///",
    ],
)
def test_what_is_no_address_is_refused_by_field(uri: object) -> None:
    with pytest.raises(ParameterInvalid) as refused:
        parse(uri)
    assert refused.value.facts == {"field": "uri"}


def test_no_address_is_a_missing_parameter() -> None:
    with pytest.raises(ParameterRequired) as refused:
        parse(None)
    assert refused.value.facts == {"field": "uri"}


@pytest.mark.parametrize("query", ["a=1&a=2", "a=1&b=2&a=1", "a=1&%61=2"])
def test_a_repeated_argument_is_refused(query: str) -> None:
    with pytest.raises(ParameterInvalid):
        parse(f"git:///prompts/p?{query}")


@pytest.mark.parametrize(
    "uri",
    ["kb://z/notes/n%237%20%26k%3D1%2Bq%3F.txt", "https://e.example/a?b=c#d", "a%2Fb/c", "%", "#", "?", "+ "],
)
def test_reported_uris_come_back_byte_for_byte(uri: str) -> None:
    assert parse(resource_address("p", uri)) == ResourceRead("p", uri)


servers = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True).filter(
    lambda name: name not in {"worker", "plurnk", "http", "https", "file", "stdio"}
)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30) | st.text(
    "%#?&=+/: é\x00", min_size=1, max_size=20
)
prompts = st.builds(PromptGet, servers, texts, st.dictionaries(texts, st.just("") | texts, max_size=3))


@given(
    st.builds(ResourceIndex, servers)
    | st.builds(ResourceRead, servers, texts)
    | st.builds(PromptIndex, servers)
    | prompts
    | st.builds(Document, servers)
)
def test_every_address_comes_back(address: Address) -> None:
    text = printed(address)
    assert text.isascii()
    assert parse(text) == address


@given(prompts)
def test_arguments_keep_their_order(address: PromptGet) -> None:
    found = parse(prompt_address(address.server, address.name, address.arguments))
    assert isinstance(found, PromptGet)
    assert list(found.arguments.items()) == list(address.arguments.items())


@given(st.text() | st.text("git:/resourcesprompts%?#&=2F", max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    address: Address | None = None
    with suppress(ParameterInvalid):
        address = parse(text)
    assert address is None or parse(printed(address)) == address


def test_everything_but_letters_digits_and_four_marks_is_percent_encoded() -> None:
    assert resource_address("p", "a/b~c.d_e-f:é") == "p:///resources/a%2Fb~c.d_e-f%3A%C3%A9"
    assert prompt_address("p", "n", {"a b": "+"}) == "p:///prompts/n?a%20b=%2B"


def test_a_document_has_the_address_of_the_contract() -> None:
    assert document_address("github") == "worker://plurnk/docs/github.md"
