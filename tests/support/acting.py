"""Performing one action in a house of operations, as the doors' ``perform`` does once it found the action."""

from typing import Any

from app.actions.action import Action, ActionOutcome, Done, Host, Interrupted, Run
from app.core.principal import Principal
from tests.support.operations_house import OperationsHouse


async def act(
    house: OperationsHouse, action: Action[Any], members: dict[str, Any], *, thread_id: str | None = None
) -> ActionOutcome:
    """Return the action's outcome."""
    host = Host(house.settings, house.manager, house.boards, house.store)
    run = Run(host, Principal(), house.workspace, house.events.append, thread_id)
    return await action.run(run, action.parse(members))


async def done(house: OperationsHouse, action: Action[Any], **members: Any) -> Any:
    """Return the result of an action that is done at once."""
    outcome = await act(house, action, members)
    assert isinstance(outcome, Done)
    return outcome.result


async def interrupted(house: OperationsHouse, action: Action[Any], **members: Any) -> Interrupted:
    """Return what an action that waits for a person waits for."""
    outcome = await act(house, action, members, thread_id="t-1")
    assert isinstance(outcome, Interrupted)
    return outcome
