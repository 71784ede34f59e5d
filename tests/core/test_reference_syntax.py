"""The syntax of references. SPEC §references."""

import re

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.reference_syntax import (
    COMPLETE_PATTERN,
    SYNTAX_PATTERN,
    WITHOUT_PATTERN,
    escape,
    find,
    is_complete,
    syntax_fault,
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
tangled = st.lists(
    st.sampled_from(["$", "{", "}", "${", "$${", "$$", "A", "${A}", "${B_1}", "1", "-", ":-", "é", "\n"])
).map("".join)


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "text, found",
    [
        ("", ()),
        ("plain $HOME $ {A} $}", ()),
        ("${A}", ("A",)),
        ("x${A}y${_b2}z${A}", ("A", "_b2")),
        ("$${A}", ()),
        ("$$${A}", ()),
        ("$$ ${A}", ("A",)),
        ("${A}$${B}${C}", ("A", "C")),
    ],
)
def test_references_are_found_once_each_in_order(text: str, found: tuple[str, ...]) -> None:
    assert (find(text), syntax_fault(text)) == (found, None)


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "text",
    ["${", "${}", "${A", "${ A}", "${A }", "${1A}", "${A-B}", "${X:-y}", "${A${B}}", "a ${Ä} b", "${A\n}"],
)
def test_every_other_form_is_a_fault(text: str) -> None:
    fault = syntax_fault(text)
    assert fault is not None
    assert "malformed reference" in fault


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "text", ["", "abc", "Bearer ${T}", "${A}${B}", " ${T}", "${T}\n", "${t-x}", "$${T}", "${T"]
)
def test_only_one_reference_and_nothing_else_is_complete(text: str) -> None:
    assert not is_complete(text)


@pytest.mark.spec("references")
@given(names)
def test_one_reference_is_complete(name: str) -> None:
    assert is_complete(f"${{{name}}}")
    assert find(f"${{{name}}}") == (name,)


@pytest.mark.spec("references")
@given(st.text() | tangled)
def test_an_escaped_text_has_no_reference_and_no_fault(text: str) -> None:
    assert (find(escape(text)), syntax_fault(escape(text))) == ((), None)


@pytest.mark.spec("definition")
@given(st.text(st.characters(exclude_categories=["Cs"])) | tangled)
def test_the_patterns_say_what_the_checks_say(text: str) -> None:
    has_nul = "\0" in text

    def matches(pattern: str) -> bool:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}).is_valid(text)

    assert matches(SYNTAX_PATTERN) == (syntax_fault(text) is None and not has_nul)
    assert matches(WITHOUT_PATTERN) == ("${" not in text and not has_nul)
    assert matches(COMPLETE_PATTERN) == is_complete(text)


@pytest.mark.spec("references")
def test_a_long_tangle_is_judged_in_one_pass() -> None:
    text = "$" * 200_000 + "${A" * 100_000
    assert find(text) == ()
    assert syntax_fault(text) is not None
    assert re.search(r"\$\{A\}", text) is None
