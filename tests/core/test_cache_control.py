"""cache_control.py: what a result says of how long and for whom it may be kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.cache_control import TTL_MAX_MS, cache_control, narrowest


@pytest.mark.spec("watch")
@pytest.mark.parametrize(
    "result, expected",
    [
        ({"ttlMs": 60_000, "cacheScope": "public"}, (60_000, "public")),
        ({"ttlMs": 60_000, "cacheScope": "private"}, (60_000, "private")),
        ({"ttlMs": 1000.0, "cacheScope": "public"}, (1000, "public")),
        ({"ttlMs": 1}, (1, "private")),
        ({"ttlMs": 1, "cacheScope": "PUBLIC"}, (1, "private")),
        ({"ttlMs": 1, "cacheScope": ["public"]}, (1, "private")),
        ({"ttlMs": 1, "cacheScope": None}, (1, "private")),
        ({"cacheScope": "public"}, (0, "public")),
        ({"ttlMs": 0, "cacheScope": "public"}, (0, "public")),
        ({"ttlMs": -5, "cacheScope": "public"}, (0, "public")),
        ({"ttlMs": 10**30, "cacheScope": "public"}, (TTL_MAX_MS, "public")),
        ({"ttlMs": 1e300}, (TTL_MAX_MS, "private")),
        ({"ttlMs": 0.5}, (0, "private")),
        ({"ttlMs": "60000"}, (0, "private")),
        ({"ttlMs": True}, (0, "private")),
        ({"ttlMs": None}, (0, "private")),
        ({"ttlMs": [1]}, (0, "private")),
    ],
)
def test_what_is_malformed_counts_as_not_at_all(result: dict[str, Any], expected: tuple[int, str]) -> None:
    assert cache_control(result) == expected


@pytest.mark.spec("watch")
@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["public", "private"])), min_size=1))
def test_pages_live_as_long_as_the_shortest_and_for_as_few_as_the_narrowest(
    pages: list[tuple[int, str]],
) -> None:
    ttl, scope = narrowest(pages)
    assert all(ttl <= each for each, _ in pages)
    assert ttl in [each for each, _ in pages]
    assert (scope == "public") is ("private" not in [each for _, each in pages])
