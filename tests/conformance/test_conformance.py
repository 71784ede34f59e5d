"""The official conformance suite against the daemon, in three modes and two releases. MCP 2026-07-28.

``make conformance``; needs a registry for the suite, and nothing from the network after that.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.conformance.expected import ALONE, RELEASES, SCORED, STRICT, UNSCORED, needed
from tests.conformance.suite import SECRETS, Outcome, Suite, installed
from tests.support.daemon import Daemon, running_daemon

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
    async with running_daemon(directory, {"PLURNK_HOST_EFFECT": "allow", **SECRETS}) as daemon:
        yield daemon


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
        for scenario in ALONE:
            group.start_soon(one, scenario)
    return outcomes


def assert_found(suite: Suite, outcome: Outcome, scenario: str, *faulty: str) -> None:
    """Fail where a check has a faulty status, or where too few succeeded for the scenario to have been run."""
    found = outcome.found[scenario]
    assert found.having(*faulty) == [], found.said
    assert len(found.having("SUCCESS")) >= needed(suite.release, scenario), found.said


@pytest.mark.parametrize("scenario", SCORED)
async def test_a_scored_scenario_has_no_failed_check(suite: Suite, contract: Outcome, scenario: str) -> None:
    assert_found(suite, contract, scenario, "FAILURE")


@pytest.mark.parametrize("scenario", STRICT)
async def test_a_scenario_has_not_even_a_warning(suite: Suite, strict: Outcome, scenario: str) -> None:
    assert_found(suite, strict, scenario, "FAILURE", "WARNING")


@pytest.mark.parametrize("scenario", ALONE)
async def test_a_scenario_passes_alone_and_its_client_ends_well(
    suite: Suite, alone: dict[str, Outcome], scenario: str
) -> None:
    assert alone[scenario].exit_status == 0, alone[scenario].output
    assert alone[scenario].found[scenario].said == "", "the adapter found fault"
    assert_found(suite, alone[scenario], scenario, "FAILURE", "WARNING")


async def test_the_suite_itself_is_content(contract: Outcome, strict: Outcome) -> None:
    assert contract.exit_status == 0, contract.output
    assert strict.exit_status == 0, strict.output


async def test_every_scenario_of_the_release_is_judged(contract: Outcome, strict: Outcome) -> None:
    assert contract.found.keys() == SCORED.keys() | UNSCORED
    assert strict.found.keys() == STRICT.keys()
