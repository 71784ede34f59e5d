"""Instants as text. RFC 3339."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.timestamps import from_text, to_text


def test_an_instant_is_written_in_utc_with_microseconds() -> None:
    east = timezone(timedelta(hours=2))
    assert to_text(datetime(2026, 11, 30, 1, 0, tzinfo=east)) == "2026-11-29T23:00:00.000000Z"


@pytest.mark.spec("observe")
@given(
    st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 Hypothesis adds the zone
)
def test_reading_gives_back_what_was_written(instant: datetime) -> None:
    assert from_text(to_text(instant)) == instant


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=5))
def test_the_order_of_texts_is_the_order_of_instants(instants: list[datetime]) -> None:
    assert sorted(instants) == sorted(instants, key=to_text)
