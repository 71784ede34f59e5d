"""Compact bytes are the same bytes in less memory than orjson leaves them with."""

import tracemalloc

import orjson
import pytest

from app.core.compact_bytes import compact

pytestmark = pytest.mark.spec("connection")


def test_kept_bytes_take_the_memory_they_need() -> None:
    value, number = {"text": "x" * 200}, 100
    tracemalloc.start()
    try:
        kept = [compact(orjson.dumps(value)) for _ in range(number)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(orjson.loads(each) == value for each in kept)
    assert size < number * 2 * len(kept[0])
