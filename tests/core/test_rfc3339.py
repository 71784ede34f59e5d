"""Moments are written in UTC, to the millisecond."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.core.rfc3339 import rfc3339

WEST = timezone(timedelta(hours=-5))


@pytest.mark.spec("agui")
@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2026, 11, 30, 13, 23, tzinfo=UTC), "2026-11-30T13:23:00.000Z"),
        (datetime(2026, 11, 30, 23, 23, 1, 999_999, tzinfo=WEST), "2026-12-01T04:23:01.999Z"),
    ],
    ids=["whole", "elsewhere"],
)
def test_a_moment_is_written_in_utc_to_the_millisecond(moment: datetime, written: str) -> None:
    assert rfc3339(moment) == written
