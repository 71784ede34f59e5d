"""A house whose servers want a person to sign in, and the management actions on it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from app.actions.table import ACTIONS
from tests.support.acting import done
from tests.support.board_house import CATALOG
from tests.support.operations_house import OperationsHouse, operations_house
from tests.support.sign_ins import GatedAttempt


@asynccontextmanager
async def protected_house(*attempts: GatedAttempt, **settings: str) -> AsyncGenerator[OperationsHouse]:
    """Run a house without servers; ``p`` and ``q`` can be attached, ``p`` begins these sign-ins."""
    async with operations_house({}, environment=settings) as house:
        house.connector.catalogs |= {"p": CATALOG, "q": CATALOG}
        house.connector.protected.add("p")
        house.connector.attempts.extend(attempts)
        yield house


async def manage(house: OperationsHouse, kind: str, **members: Any) -> Any:
    """Return what a management action answers."""
    return await done(house, ACTIONS[f"workspace.mcp.{kind}"], **members)


async def complete(house: OperationsHouse, callback_url: str, name: str = "p") -> Any:
    """Hand over a callback."""
    return await manage(house, "oauth.complete", name=name, callbackUrl=callback_url)


async def pending(house: OperationsHouse) -> list[str]:
    """Return the URLs at which somebody can sign in."""
    listed = (await manage(house, "list"))["pending"]
    return [each["authorization"]["url"] for each in listed]


async def states(house: OperationsHouse) -> dict[str, str]:
    """Return the state of each server."""
    return {each["name"]: each["state"] for each in (await manage(house, "list"))["servers"]}
