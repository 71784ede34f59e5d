"""The table of faults in the documents is the cases: every kind, its cases and its runs. SPEC §status."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.cases import FILES, REPORTED, Json, all_cases, runs
from tests.faults.scope import AMENDED, NOT_YET

DOCUMENT = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()


def rows(columns: int) -> list[list[str]]:
    """Return the rows of the table that is so wide, without its head."""
    cells = [line.strip("| ").split(" | ") for line in DOCUMENT.splitlines() if line.startswith("| ")]
    return [row for row in cells if len(row) == columns][1:]


@pytest.mark.spec("status")
def test_every_kind_has_its_row_with_its_cases_and_runs() -> None:
    cases = Counter(case["kind"] for case in all_cases(REPORTED))
    executed = Counter(run.case["kind"] for run in runs(REPORTED) if run.id not in NOT_YET)
    assert [(row[0], int(row[3]), int(row[4])) for row in rows(5)] == [
        (kind, number, executed[kind]) for kind, number in cases.items()
    ]
    [totals] = re.findall(r"^(\d+) cases in (\d+) kinds, run (\d+) times", DOCUMENT, re.MULTILINE)
    assert [int(each) for each in totals] == [cases.total(), len(cases), executed.total()]


@pytest.mark.spec("status")
def test_the_other_instances_are_counted_and_each_of_transports_says_what_it_is() -> None:
    own = [name for name in FILES if name not in REPORTED]
    [told] = re.findall(r": (\d+) of them, run (\d+) times", DOCUMENT)
    assert [int(each) for each in told] == [len(all_cases(own)), len(list(runs(own)))]
    transport: list[Json] = all_cases(["variants_transport.jsonl"])
    assert len({case["says"] for case in transport}) == len(transport)
    assert len({case["id"] for case in all_cases()}) == len(all_cases())


@pytest.mark.spec("status")
def test_every_case_that_is_read_otherwise_is_told() -> None:
    assert [row[0] for row in rows(2)] == sorted(AMENDED)
