"""One tool call: found, checked, proposed where somebody must consent, sent at most once. SPEC §calls."""

from functools import partial
from typing import NamedTuple

from app.core import sign_in
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.interrupts import Question
from app.core.json_value import JsonObject
from app.core.operation import Send, Work
from app.core.operation_problems import ArgumentsInvalid, ToolNotFound
from app.core.param_headers import present_arguments
from app.core.policy import Effect, Tool
from app.core.problems import ServerChanged
from app.core.proposals import proposal
from app.core.schemas import validate
from app.core.snapshot import ServerSnapshot, WorkspaceSnapshot
from app.core.tool_results import tool_result
from app.core.tool_view import ToolView, tool_view
from app.operations.board import Board
from app.operations.endings import Rest
from app.operations.open_operation import new_operation_id
from app.operations.servers import connected_server
from app.operations.telling import Observe
from app.ports import Connection

KIND = "workspace.mcp.call"


class FoundTool(NamedTuple):
    """A tool of the current snapshot, and where it runs."""

    server: str
    definition: StdioDefinition | HttpDefinition
    tool: Tool
    view: ToolView
    """The tool, taken apart."""


async def call(
    board: Board,
    server: str,
    tool: str,
    arguments: JsonObject,
    *,
    observe: Observe,
    thread_id: str | None = None,
) -> Rest:
    """Return the call's result, or that it waits for consent.

    Raises:
        ServerNotFound: there is no such server.
        ServerNotConnected: it cannot serve now.
        ToolNotFound: it has no such enabled tool.
        ArgumentsInvalid: the arguments break its input schema.
        TooMany: there are as many operations as there may be.
        Problem: the one the operation ended in.
    """
    found = find_tool(await board.workspace.ready(server), server, tool)
    schema = found.view.input_schema
    if errors := validate(schema, present_arguments(schema, arguments)):
        raise ArgumentsInvalid(server, tool, errors)
    operation = new_operation_id()
    needs_consent = found.tool.effect is Effect.HOST and board.settings.host_effect == "review"
    work = _work(
        operation, found, arguments, needs_consent=needs_consent, max_result=board.settings.max_result
    )
    admit = partial(require_same, found)
    return await board.run(
        operation, work, admit=admit, observe=observe, thread_id=thread_id, arguments=arguments
    )


def find_tool(snapshot: WorkspaceSnapshot[Connection], server: str, tool: str) -> FoundTool:
    """Return the enabled tool.

    Raises:
        ServerNotFound: there is no such server.
        ServerNotConnected: it cannot serve now.
        ToolNotFound: it has no such enabled tool.
    """
    current, published = connected_server(snapshot, server)
    found = published.registry.tools.get(tool)
    if found is None or current.definition is None:
        raise ToolNotFound(server, tool)
    return FoundTool(server, current.definition, found, tool_view(found.raw))


def require_same(found: FoundTool, current: ServerSnapshot[Connection]) -> None:
    """Return where the tool is, to the byte, what was found, with the same effect and at the same endpoint.

    The arguments need no second validation then: they are the ones that fitted this very schema.

    Raises:
        ServerChanged: it is another or gone; nothing was sent.
    """
    tool = _tool_of(current, found.tool.name)
    if tool is found.tool and current.definition is found.definition:
        return
    is_same_tool = tool is not None and (tool.raw, tool.effect) == (found.tool.raw, found.tool.effect)
    if not is_same_tool or _endpoint(current.definition) != _endpoint(found.definition):
        raise ServerChanged(found.server)


def _tool_of(server: ServerSnapshot[Connection], tool: str) -> Tool | None:
    return server.published.registry.tools.get(tool) if server.published is not None else None


def _endpoint(definition: StdioDefinition | HttpDefinition | None) -> StdioDefinition | HttpDefinition | None:
    """Return the definition without what only says which tools are enabled and how."""
    return None if definition is None else definition.model_copy(update={"tools": None, "read": ()})


def _work(
    operation: str, found: FoundTool, arguments: JsonObject, *, needs_consent: bool, max_result: int
) -> Work:
    view, server, tool = found.view, found.server, found.tool.name
    tool_call_id = f"call-{operation.removeprefix('op-')}"

    def interpret(value: JsonObject) -> JsonObject:
        shown: JsonObject = {"status": 200, "operation": operation, "toolCallId": tool_call_id}
        return shown | tool_result(value, server=server, output_schema=view.output_schema)

    consent: tuple[Question, ...] = ()
    refused: JsonObject | None = None
    if needs_consent:
        question = proposal(
            operation=operation, server=server, tool=tool, arguments=arguments, signature=view.signature
        )
        consent = (question,)
        refused = {"status": 200, "operation": operation, "rejected": True}
    return Work(
        kind=KIND,
        server=server,
        transport=found.definition.transport,
        request=Send("tools/call", {"name": tool, "arguments": arguments}, view.input_schema),
        interpret=interpret,
        max_result=max_result,
        tool=tool,
        tool_call_id=tool_call_id,
        may_ask=True,
        may_sign_in=sign_in.is_possible(found.definition),
        may_defer=True,
        consent=consent,
        refused=refused,
    )
