"""No bytes from outside break a parser: a short run of every target, and every input that once did."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.engine import LawBroken, fuzz, observe
from tests.fuzz.target import CANARY, Target
from tests.fuzz.targets import TARGETS

BY_NAME = {target.name: target for target in TARGETS}
FOUND = [
    ("wire", b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1e300}}'),
    ("wire", b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1e300, "message": ""}}'),
    ("result", b'{"completion": {"values": [], "total": 1e300}}'),
    ("named-url", b"https://as.exaxn--/x?y"),
    ("database-row", b'"w"\x1f!k\x1f!\xff\x1f!o\x1f"2026-01-01T00:00:00.000000Z"'),
    ("database-row", b'"w"\x1f"s"\x1f"attached"\x1f"x"\x1f"2026-99-99T99:99:99.999999Z"'),
    ("small-file", b"+ 11844674407370955161623 456"),
    ("small-file", b"+ " + b"9" * 5000),
    ("small-file", b"[" * 5000),
    ("small-file", b"\xff\xfe"),
]
"""What broke a parser once, by target."""


@pytest.mark.spec("connection", "oauth", "defaults", "agui", "state")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_mutation_of_good_input_breaks_a_law(target: Target) -> None:
    figures = fuzz(target, seed=1, goes_on=lambda executions: executions < 60)
    assert figures.broken == []
    assert figures.executions == 60
    assert figures.corpus, "no seed reaches the parser"


@pytest.mark.spec("connection", "oauth", "defaults", "agui", "state")
@settings(max_examples=150, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(data=st.data())
def test_no_sequence_of_words_of_the_grammar_breaks_a_law(data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(TARGETS))
    words = st.sampled_from([*target.words, *target.seeds]) | st.binary(max_size=8)
    observe(target, b"".join(data.draw(st.lists(words, max_size=12))))


@pytest.mark.parametrize("name, data", FOUND, ids=lambda value: repr(value)[:60])
def test_what_once_broke_a_law_does_not_any_more(name: str, data: bytes) -> None:
    observe(BY_NAME[name], data)


def _raises_on_two_brackets(data: bytes) -> None:
    if data.startswith(b"[["):
        raise KeyError(CANARY)


@pytest.mark.parametrize(
    "run, why",
    [(_raises_on_two_brackets, "KeyError"), (BY_NAME["schema"].run, "steps")],
    ids=["undocumented", "steps"],
)
def test_the_fuzzer_finds_what_is_there_to_be_found(run: Callable[[bytes], None], why: str) -> None:
    target = Target("planted", run, (b'{"type": "object"}',), (b"[",), steps_fixed=0, steps_per_byte=1)
    figures = fuzz(target, seed=1, goes_on=lambda executions: executions < 2000)
    assert figures.broken
    assert why in str(figures.broken[0])
    with pytest.raises(LawBroken):
        observe(target, figures.broken[0].data)
