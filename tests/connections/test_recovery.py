"""Delays between restarts. SPEC §connection."""

import pytest

from app.connections.recovery import Attempts, Backoff

pytestmark = pytest.mark.spec("connection")


def test_delays_double_from_one_second_to_a_minute_and_stay_there() -> None:
    attempts = Attempts(Backoff(jitter=0.0))
    assert [attempts.delay_after(0.0) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert attempts.count == 9


def test_a_minute_of_health_earns_the_first_delay_again() -> None:
    attempts = Attempts(Backoff(jitter=0.0))
    assert [attempts.delay_after(ready) for ready in (59.9, 59.9, 60.0, 0.0)] == [1, 2, 1, 2]


@pytest.mark.parametrize("chance, delay", [(0.0, 1.0), (0.5, 0.9), (1.0, 0.8)])
def test_chance_takes_off_at_most_the_jitter(chance: float, delay: float) -> None:
    assert Attempts(Backoff(), chance=lambda: chance).delay_after(0.0) == pytest.approx(delay)


def test_a_server_that_never_returns_overflows_nothing() -> None:
    attempts = Attempts(Backoff(jitter=0.0))
    assert {attempts.delay_after(0.0) for _ in range(5000)} == {1, 2, 4, 8, 16, 32, 60}
