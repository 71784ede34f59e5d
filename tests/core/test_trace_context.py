"""A caller's trace context: passed on to the letter where it is well-formed, absent where it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.trace_context import TraceContext, parse

pytestmark = pytest.mark.spec("observe")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize(
    "headers, expected",
    [
        ([GOOD], GOOD),
        ([f" {GOOD}\t"], GOOD),
        ([f"00-{TRACE}-{PARENT}-00"], f"00-{TRACE}-{PARENT}-00"),
        ([f"01-{TRACE}-{PARENT}-01"], GOOD),
        ([f"cc-{TRACE}-{PARENT}-01-what-comes"], GOOD),
    ],
)
def test_a_good_traceparent_is_read_as_version_00(headers: list[str], expected: str) -> None:
    assert parse(headers, []) == TraceContext(expected)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [""],
        [GOOD, GOOD],
        [f"ff-{TRACE}-{PARENT}-01"],
        [f"00-{'0' * 32}-{PARENT}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [GOOD.upper()],
        [f"{GOOD}-more"],
        [f"cc-{TRACE}-{PARENT}-01.what"],
        [f"00-{TRACE[1:]}-{PARENT}-01"],
        [f"{GOOD}\nx"],
        [f'{GOOD}"'],
    ],
)
def test_a_faulty_traceparent_counts_as_absent_and_its_tracestate_too(headers: list[str]) -> None:
    assert parse(headers, ["a=1"]) is None


@pytest.mark.parametrize(
    "headers, expected",
    [
        (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (["a=1 , ,b=2", "c=3"], "a=1,b=2,c=3"),
        (["fw529a3039@dt=FfAAAAA"], "fw529a3039@dt=FfAAAAA"),
        ([], None),
        (["  "], None),
        (["a=1,a=2"], None),
        (["A=1"], None),
        (["a"], None),
        (["a="], None),
        (["a=b=c"], None),
        (["a=\u00e9"], None),
        ([",".join(f"k{n}=v" for n in range(33))], None),
        ([f"a={'x' * 250},b={'x' * 250},c={'x' * 20}"], None),
    ],
)
def test_a_tracestate_is_a_list_or_absent(headers: list[str], expected: str | None) -> None:
    assert parse([GOOD], headers) == TraceContext(GOOD, expected)


def test_the_carrier_has_what_there_is() -> None:
    assert TraceContext(GOOD).carrier() == {"traceparent": GOOD}
    assert TraceContext(GOOD, "a=1").carrier() == {"traceparent": GOOD, "tracestate": "a=1"}


@given(st.text(), st.text())
def test_no_header_raises(parent: str, state: str) -> None:
    context = parse([parent], [state])
    assert context is None or parse([context.traceparent], [context.tracestate or ""]) == context
