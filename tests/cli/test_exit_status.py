"""Which exit status a Problem gives. SPEC §cli."""

import pytest

from app.cli.exit_status import ExitStatus, of_problem


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "status, expected", [(400, 3), (409, 3), (429, 3), (499, 3), (500, 4), (502, 4), (504, 4), (None, 3)]
)
def test_the_class_of_the_status_decides(status: int | None, expected: int) -> None:
    assert of_problem(status) == expected


@pytest.mark.spec("cli")
def test_the_numbers_are_those_of_the_contract() -> None:
    assert [status.value for status in ExitStatus] == [0, 1, 2, 3, 4, 5, 6, 130]
