"""What REST does to one workspace: actions, their twins by path, answers, operations. SPEC §agui, §actions.

Every handler has sent nothing where it raises; the endpoint around it answers with the Problem.
"""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import assert_never

from app.actions.action import ActionOutcome, Done, Interrupted
from app.actions.operation_outcome import action_outcome
from app.actions.perform import perform, stage_of
from app.core.door_problems import InputMalformed
from app.core.json_value import Json, JsonObject
from app.core.names import parse_workspace_name
from app.core.problem import Stage
from app.core.problems import ActionRequired, ParameterInvalid, ParameterRequired
from app.doors.asgi import Receive, Scope, Send
from app.doors.body import has_body, read_json
from app.doors.endpoint import host_of
from app.doors.security import principal_of
from app.operations.board import Board, StillOpen, Working
from app.rest.answers import Observed, Work, answer
from app.rest.models import parse_answer
from app.workspaces.workspace import Workspace

WATCH = "workspace.mcp.watch"


async def act(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform the action that is the body."""
    workspace = _name(scope)
    action = await _body(scope, receive)
    if action is None:
        raise ActionRequired("body")
    if not isinstance(action, dict):
        raise ParameterInvalid("body", "an action is an object with a 'kind'")
    await _perform(scope, receive, send, workspace, action)


async def list_servers(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.list``."""
    await _perform(scope, receive, send, _name(scope), {"kind": "workspace.mcp.list"})


async def attach(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.attach`` with the body ``{server}``."""
    workspace = _name(scope)
    members = _members(await _body(scope, receive))
    await _perform(scope, receive, send, workspace, {**members, "kind": "workspace.mcp.attach"})


async def replace(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.replace`` with the body ``{server}``, whose name is the path's."""
    workspace = _name(scope)
    members = _members(await _body(scope, receive))
    name, server = _path(scope)["name"], members.get("server")
    if isinstance(server, dict):
        if server.get("name", name) != name:
            raise ParameterInvalid("server.name", "the path names another server")
        members = {**members, "server": {**server, "name": name}}
    await _perform(scope, receive, send, workspace, {**members, "kind": "workspace.mcp.replace"})


async def detach(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.detach`` for the path's server."""
    action: JsonObject = {"kind": "workspace.mcp.detach", "name": _path(scope)["name"]}
    await _perform(scope, receive, send, _name(scope), action)


async def reconnect(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.reconnect`` for the path's server; a body is not needed."""
    await _perform_on_server(scope, receive, send, "workspace.mcp.reconnect")


async def complete_authorization(scope: Scope, receive: Receive, send: Send) -> None:
    """Perform ``workspace.mcp.oauth.complete`` for the path's server with the body ``{callbackUrl}``."""
    await _perform_on_server(scope, receive, send, "workspace.mcp.oauth.complete")


async def answer_interrupt(scope: Scope, receive: Receive, send: Send) -> None:
    """Take one answer; the last one of its operation answers as the action would have."""
    workspace = _workspace(scope)
    entry = parse_answer(_path(scope)["interrupt"], await _body(scope, receive))
    board = host_of(scope).boards.of(workspace)
    observed = Observed(board.operation_of(entry.interrupt_id))

    async def answered() -> ActionOutcome:
        with workspace.in_use():
            rest = await board.answer(entry, observe=observed)
        if isinstance(rest, StillOpen):
            return Interrupted(rest.operation, rest.interrupts)
        return action_outcome(rest)

    await answer(scope, receive, send, answered, stage=Stage.OPERATION, observed=observed)


async def show_operation(scope: Scope, receive: Receive, send: Send) -> None:
    """Repeat the operation's end, or say where it stands."""
    board = host_of(scope).boards.of(_workspace(scope))
    await answer(
        scope, receive, send, partial(_stand, board, _path(scope)["operation"]), stage=Stage.OPERATION
    )


async def _stand(board: Board, operation: str) -> ActionOutcome:
    rest = board.result_of(operation)
    if isinstance(rest, Working):
        return Done({"status": 202, "operation": operation, "state": "working"})
    return action_outcome(rest)


async def _perform_on_server(scope: Scope, receive: Receive, send: Send, kind: str) -> None:
    workspace = _name(scope)
    members = _members(await _body(scope, receive)) if has_body(scope) else {}
    if "name" in members:
        raise ParameterInvalid("name", "the path names the server")
    action: JsonObject = {**members, "kind": kind, "name": _path(scope)["name"]}
    await _perform(scope, receive, send, workspace, action)


def _perform(
    scope: Scope, receive: Receive, send: Send, workspace: str, action: JsonObject
) -> Awaitable[None]:
    host, kind, observed = host_of(scope), action.get("kind"), Observed()
    work: Work = partial(perform, host, principal_of(scope), workspace, action, observe=observed)
    if kind == WATCH:
        work = partial(_watched, work, action.get("seconds"), host.manager.workspace(workspace))
    return answer(scope, receive, send, work, stage=stage_of(kind), observed=observed)


async def _watched(work: Work, seconds: Json, workspace: Workspace) -> ActionOutcome:
    """Watch for the seconds asked for; without a stream there is no watching for ever."""
    if seconds is None:
        raise ParameterRequired("seconds")
    outcome = await work()
    match outcome:
        case Done(result):
            return Done({**result, "state": workspace.state.snapshot()})
        case Interrupted():
            return outcome
        case _:
            assert_never(outcome)


def _workspace(scope: Scope) -> Workspace:
    """Return the workspace that the path names, where the caller may use it."""
    return host_of(scope).manager.workspace(_name(scope))


def _path(scope: Scope) -> Mapping[str, str]:
    parameters: Mapping[str, str] = scope["path_params"]
    return parameters


def _name(scope: Scope) -> str:
    """Return the name of the path's workspace, where the caller may use it."""
    name = parse_workspace_name(scope["path_params"]["workspace"])
    principal_of(scope).require(name)
    return name


def _body(scope: Scope, receive: Receive) -> Awaitable[Json]:
    """Return the parsed body; who may not use the workspace was refused before it is read."""
    return read_json(scope, receive, limit=host_of(scope).settings.max_body)


def _members(body: Json) -> JsonObject:
    """Return the parameters that a body gives to an action whose kind the path says."""
    if not isinstance(body, dict):
        raise InputMalformed([("", "an object is needed")])
    if "kind" in body:
        raise ParameterInvalid("kind", "the path says what is done")
    return body
