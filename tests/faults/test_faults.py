"""Faults that were reported of systems like ours, each against the real daemon. SPEC §status.

All cases run before the first is judged, several at once: they mostly wait.
"""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.faults.acting import STEPS
from tests.faults.cases import Run, all_cases, runs
from tests.faults.judgement import ALTERNATIVES, TRACES
from tests.faults.judging import JUDGES
from tests.faults.running import House, run_all
from tests.faults.scope import NOT_YET

pytestmark = pytest.mark.timeout(500)
RUNS = {run.identity: run for run in runs()}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[dict[str, list[str]]]:
    """What is wrong with each case that was selected."""
    selected = {
        item.callspec.params["identity"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_a_reported_fault.__name__
    }
    wanted = [run for run in RUNS.values() if run.identity in selected and run.id not in NOT_YET]
    house = House(tmp_path_factory.mktemp("faults"))
    try:
        yield await run_all(house, wanted)
    finally:
        house.close()


def _parameter(run: Run) -> Any:
    reason = NOT_YET.get(run.id)
    return pytest.param(run.identity, marks=[pytest.mark.skip(reason)] if reason else [])


@pytest.mark.spec("connection", "prepare", "calls", "lifecycle", "state", "security")
@pytest.mark.parametrize("identity", [_parameter(run) for run in RUNS.values()])
async def test_a_reported_fault(outcomes: dict[str, list[str]], identity: str) -> None:
    assert outcomes[identity] == []


def test_every_step_is_done_and_every_expectation_judged() -> None:
    steps = [step for run in RUNS.values() for step in run.case["steps"]]
    expected = [expectation for run in RUNS.values() for expectation in run.case["expect"]]
    assert [step for step in steps if not step.keys() & STEPS.keys()] == []
    assert [each for each in expected if not each.keys() & {*JUDGES, *TRACES, *ALTERNATIVES}] == []


def test_what_is_not_run_yet_exists() -> None:
    assert NOT_YET.keys() <= {case["id"] for case in all_cases()}
