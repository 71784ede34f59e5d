"""Performing an action for a door: find it, run it, log and count it, leave an audit row. SPEC §actions, §observe."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import anyio
import structlog

from app.actions.action import Action, ActionOutcome, Done, Host, Interrupted, Run
from app.actions.table import ACTIONS
from app.core.audit import AuditRow, AuditTrail
from app.core.events import RunEvent
from app.core.names import parse_workspace_name, server_name_fault
from app.core.principal import Principal
from app.core.problem import Problem, Stage
from app.core.problems import ActionRequired, ActionUnknown, Internal, ParameterInvalid, ParameterRequired
from app.operations.board import ResumeEntry, Settled
from app.workspaces.workspace import Workspace

log = structlog.get_logger("plurnk.action")


def stage_of(kind: object) -> Stage:
    """Return the stage that Problems of this kind of action speak for; management for an unknown kind."""
    action = ACTIONS.get(kind) if isinstance(kind, str) else None
    return action.stage if action else Stage.MANAGEMENT


async def perform(
    host: Host,
    principal: Principal,
    workspace: str,
    action: object,
    *,
    observe: Callable[[RunEvent], None],
    thread_id: str | None = None,
) -> ActionOutcome:
    """Return how the action ended; ``action`` is the object a client posted.

    Raises:
        Problem: WorkspaceRefused, ActionRequired, ActionUnknown, ParameterRequired, ParameterInvalid, the action's
            own, or Internal for a bug of ours.
    """
    row, members = _found(action)
    run = _run(host, principal, workspace, observe, thread_id)
    with run.workspace.in_use():
        return await _recorded(run, row, members)


async def resume(
    host: Host,
    principal: Principal,
    workspace: str,
    entries: Sequence[ResumeEntry],
    *,
    observe: Callable[[RunEvent], None],
    thread_id: str | None = None,
) -> tuple[str, ActionOutcome]:
    """Return the kind of the resumed action and how it ended, or that it waits again.

    Raises:
        Problem: as ``Board.resume``, or Internal for a bug of ours.
    """
    run = _run(host, principal, workspace, observe, thread_id)
    with run.workspace.in_use():
        board = host.boards.of(run.workspace)
        try:
            ended = await board.resume(entries, observe=observe, thread_id=thread_id)
        except Problem:
            raise
        except Exception as error:
            raise _bug(run, "resume", error) from error
    if isinstance(ended, Settled):
        return ended.kind, Done(ended.result, ended.encoded)
    return ended.kind, Interrupted(ended.operation, ended.interrupts)


def _found(action: object) -> tuple[Action[Any], dict[str, Any]]:
    if action is None:
        raise ActionRequired
    if not isinstance(action, dict):
        raise ParameterInvalid("action", "an action is an object with a 'kind'")
    members = cast("dict[str, Any]", action)
    if "kind" not in members:
        raise ParameterRequired("kind")
    kind = members["kind"]
    if not isinstance(kind, str):
        raise ParameterInvalid("kind", "a kind is a string")
    if kind not in ACTIONS:
        raise ActionUnknown(kind)
    parameters = members.copy()
    del parameters["kind"]
    return ACTIONS[kind], parameters


def _run(
    host: Host,
    principal: Principal,
    workspace: str,
    observe: Callable[[RunEvent], None],
    thread_id: str | None,
) -> Run:
    name = parse_workspace_name(workspace)
    principal.require(name)
    return Run(host, principal, host.manager.workspace(name), observe, thread_id)


async def _recorded(run: Run, row: Action[Any], members: dict[str, Any]) -> ActionOutcome:
    began = time.perf_counter()
    outcome, server, telemetry = "cancelled", _server(run.workspace, members), run.host.telemetry
    span = telemetry.tracer.begin(
        row.kind, "server", {"plurnk.workspace": run.workspace.name, "plurnk.server": server}
    )
    trail = None
    if row.is_audited:
        trail = AuditTrail(run.principal.actor, run.workspace.name, row.kind, server)
        run = replace(run, trail=trail)
    try:
        work = row.run(run, row.parse(members))
        ended = await (work if span is None else span.around(work))
        outcome = _word(ended)
    except Problem as problem:
        outcome = problem.code
        raise
    except Exception as error:
        outcome = "internal"
        raise _bug(run, row.kind, error) from error
    else:
        return ended
    finally:
        seconds = time.perf_counter() - began
        telemetry.measures.actions.add(row.kind, outcome)
        telemetry.measures.action_seconds.add(seconds, row.kind)
        if span is not None:
            span.end(outcome)
        log.info(
            "action",
            workspace=run.workspace.name,
            kind=row.kind,
            server=server,
            outcome=outcome,
            ms=int(seconds * 100_000) / 100,
        )
        if trail is not None and not trail.is_left:
            await _audit(run, trail.row(outcome, datetime.now(UTC)))


def _word(ended: ActionOutcome) -> str:
    match ended:
        case Interrupted():
            return "interrupted"
        case Done(result) if result.get("status") == 202:
            return "pending"
        case Done():
            return "ok"


def _server(workspace: Workspace, members: dict[str, Any]) -> str | None:
    """Return the server an action names, wherever its kind puts it, where it is a name at all."""
    named = members.get("name", members.get("server"))
    if isinstance(named, dict):
        named = cast("dict[str, Any]", named).get("name")
    if not isinstance(named, str):
        return None
    return named if named in workspace.snapshot.servers or server_name_fault(named) is None else None


def _bug(run: Run, kind: str, error: Exception) -> Internal:
    trace = uuid.uuid4().hex
    log.error("internal", workspace=run.workspace.name, kind=kind, trace=trace, exc_info=error)
    return Internal(trace)


async def _audit(run: Run, row: AuditRow) -> None:
    with anyio.CancelScope(shield=True):
        try:
            await run.host.store.record(row)
        except Problem as problem:
            log.warning("audit-failed", workspace=row.workspace, kind=row.kind, code=problem.code)
