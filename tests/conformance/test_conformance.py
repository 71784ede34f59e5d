"""The official conformance suite against the daemon, in three modes and two releases. MCP 2026-07-28.

``make conformance``; needs a registry for the suite, and nothing from the network after that.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.conformance.expected import ALONE, NOT_YET, RELEASES, SCORED, STRICT, UNSCORED
from tests.conformance.suite import SECRETS, Found, Outcome, Suite, installed
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600), pytest.mark.spec("revision", "oauth")]
AT_ONCE = 4


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for the module's daemon."""
    return "asyncio"


@pytest.fixture(scope="module")
def suite_directory(request: pytest.FixtureRequest) -> Path:
    """Where the suite is installed; without a registry nothing here can run."""
    assert request.config.cache is not None
    try:
        return installed(request.config.cache.mkdir("conformance"))
    except RuntimeError as unreachable:
        pytest.skip(f"the suite could not be installed, so NOTHING was judged: {unreachable}")


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon for everything; effects need no person here."""
    directory = tmp_path_factory.mktemp("daemon")
    daemon = Daemon(directory, {"PLURNK_HOST_EFFECT": "allow", **SECRETS})
    try:
        yield await daemon.start()
    finally:
        daemon.close()


@pytest.fixture(scope="module", params=RELEASES)
def suite(
    request: pytest.FixtureRequest,
    suite_directory: Path,
    daemon: Daemon,
    tmp_path_factory: pytest.TempPathFactory,
) -> Suite:
    """One release of the suite."""
    return Suite(suite_directory, request.param, daemon, tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
async def contract(suite: Suite) -> Outcome:
    """The scored scenarios, all at once."""
    return await suite.contract()


@pytest.fixture(scope="module")
async def strict(suite: Suite) -> Outcome:
    """All scenarios of the revision, all at once, warnings included."""
    return await suite.strict()


@pytest.fixture(scope="module")
async def alone(suite: Suite) -> dict[str, Outcome]:
    """Each scenario by itself."""
    outcomes: dict[str, Outcome] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(scenario: str) -> None:
        async with limit:
            outcomes[scenario] = await suite.alone(scenario)

    async with anyio.create_task_group() as group:
        for scenario in ALONE.keys() - NOT_YET.keys():
            group.start_soon(one, scenario)
    return outcomes


def the(scenarios: dict[str, int]) -> pytest.MarkDecorator:
    """Run a test for each scenario and the successes that it needs."""
    marked = [
        pytest.param(
            scenario,
            least,
            id=scenario,
            marks=[pytest.mark.skip(NOT_YET[scenario])] if scenario in NOT_YET else [],
        )
        for scenario, least in scenarios.items()
    ]
    return pytest.mark.parametrize(("scenario", "least"), marked)


def successes(found: Found) -> int:
    """Return how many checks succeeded."""
    return len(found.having("SUCCESS"))


@the(SCORED)
async def test_a_scored_scenario_has_no_failed_check(contract: Outcome, scenario: str, least: int) -> None:
    found = contract.found[scenario]
    assert found.having("FAILURE") == [], found.said
    assert successes(found) >= least, found.said


@the(STRICT)
async def test_a_scenario_has_not_even_a_warning(strict: Outcome, scenario: str, least: int) -> None:
    found = strict.found[scenario]
    assert found.having("FAILURE", "WARNING") == [], found.said
    assert successes(found) >= least, found.said


@the(ALONE)
async def test_a_scenario_passes_alone_and_its_client_ends_well(
    alone: dict[str, Outcome], scenario: str, least: int
) -> None:
    outcome = alone[scenario]
    assert outcome.exit_status == 0, outcome.output
    assert outcome.found[scenario].said == ""
    assert successes(outcome.found[scenario]) >= least


@pytest.mark.skipif(bool(NOT_YET), reason="some scenarios are not judged yet")
async def test_the_suite_itself_is_content(contract: Outcome, strict: Outcome) -> None:
    assert contract.exit_status == 0, contract.output
    assert strict.exit_status == 0, strict.output


async def test_every_scenario_of_the_release_is_judged(contract: Outcome, strict: Outcome) -> None:
    assert contract.found.keys() == SCORED.keys() | UNSCORED
    assert strict.found.keys() == STRICT.keys()
