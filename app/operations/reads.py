"""Reads, prompts and completions: addressed, sent under a lease and a deadline like calls, never proposed.

SPEC §addresses, §actions. Indexes and documents come out of the snapshot, without a request.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import assert_never

import orjson

from app.core import addresses, sign_in
from app.core.catalog import Entry
from app.core.documents import document
from app.core.json_value import Json, JsonObject
from app.core.operation import Send, Work
from app.core.operation_problems import PromptNotFound, ResourceNotFound
from app.core.problem import Outcome, Problem
from app.core.problems import ParameterInvalid
from app.core.read_results import completion_result, prompt_result, resource_result
from app.core.snapshot import Published, ServerSnapshot, WorkspaceSnapshot
from app.operations.board import Board
from app.operations.endings import Rest, Settled
from app.operations.open_operation import new_operation_id
from app.operations.servers import connected_server, published_server
from app.operations.telling import Observe
from app.ports import Connection

READ = "workspace.mcp.read"
COMPLETE = "workspace.mcp.complete"
RESOURCE_NOT_FOUND = -32002
"""What earlier revisions answered for an unknown resource, and clients still understand."""

Refusals = Mapping[int, Callable[[], Problem]]
_MAY_ASK = frozenset({"resources/read", "prompts/get"})


async def read(board: Board, uri: str, *, observe: Observe, thread_id: str | None = None) -> Rest:
    """Return what the address names.

    Raises:
        ParameterInvalid: it is no address.
        ServerNotFound: there is no such server.
        ServerNotConnected: it cannot serve now.
        ResourceNotFound: the server offers no resources, or has none of this URI.
        PromptNotFound: the server offers no prompts.
        Problem: the one the operation ended in.
    """
    address = addresses.parse(uri)
    snapshot = await board.workspace.ready(address.server)
    match address:
        case addresses.ResourceIndex(server):
            return _at_once(_resource_index(published_server(snapshot, server)))
        case addresses.PromptIndex(server):
            return _at_once({"prompts": _listed(published_server(snapshot, server).catalog.prompts)})
        case addresses.Document(server):
            return _at_once(_document(snapshot, server, uri))
        case addresses.ResourceRead(server, resource):
            work = _resource(board, snapshot, server, resource)
        case addresses.PromptGet(server, name, arguments):
            work = _prompt(board, snapshot, server, name, arguments)
        case _:
            assert_never(address)
    return await _run(board, work, observe=observe, thread_id=thread_id)


async def complete(board: Board, server: str, asked: JsonObject, *, observe: Observe) -> Rest:
    """Return the server's suggestions; ``asked`` holds ``ref``, ``argument`` and perhaps ``context``.

    Raises:
        ParameterInvalid: the server completes nothing; nothing was sent.
        ServerNotFound: there is no such server.
        ServerNotConnected: it cannot serve now.
        Problem: the one the operation ended in.
    """
    current, published = connected_server(await board.workspace.ready(server), server)
    if not published.catalog.offers("completions"):
        raise ParameterInvalid("server", f"server '{server}' offers no completions")
    interpret = partial(completion_result, server=server)
    work = _work(board, current, COMPLETE, Send("completion/complete", asked), interpret)
    return await _run(board, work, observe=observe)


def _resource(board: Board, snapshot: WorkspaceSnapshot[Connection], server: str, uri: str) -> Work:
    current, published = connected_server(snapshot, server)
    if not published.catalog.offers("resources"):
        raise ResourceNotFound(server)
    refusals: Refusals = {RESOURCE_NOT_FOUND: lambda: ResourceNotFound(server, outcome=Outcome.REJECTED)}
    interpret = partial(resource_result, server=server)
    return _work(board, current, READ, Send("resources/read", {"uri": uri}), interpret, refusals=refusals)


def _prompt(
    board: Board,
    snapshot: WorkspaceSnapshot[Connection],
    server: str,
    name: str,
    arguments: Mapping[str, str],
) -> Work:
    current, published = connected_server(snapshot, server)
    if not published.catalog.offers("prompts"):
        raise PromptNotFound(server)
    params: JsonObject = {"name": name}
    if arguments:
        params["arguments"] = dict(arguments)
    return _work(board, current, READ, Send("prompts/get", params), partial(prompt_result, server=server))


def _work(
    board: Board,
    server: ServerSnapshot[Connection],
    kind: str,
    request: Send,
    interpret: Callable[[JsonObject], JsonObject],
    *,
    refusals: Refusals | None = None,
) -> Work:
    return Work(
        kind=kind,
        server=server.name,
        transport=server.definition.transport if server.definition is not None else "stdio",
        request=request,
        interpret=interpret,
        max_result=board.settings.max_result,
        may_ask=request.method in _MAY_ASK,
        may_sign_in=request.method in _MAY_ASK and sign_in.is_possible(server.definition),
        refusals=refusals,
    )


async def _run(board: Board, work: Work, *, observe: Observe, thread_id: str | None = None) -> Rest:
    return await board.run(
        new_operation_id(), work, admit=lambda _: None, observe=observe, thread_id=thread_id
    )


def _at_once(result: JsonObject) -> Settled:
    """Return the result of a read that needs no operation."""
    return Settled("", READ, result)


def _resource_index(published: Published[Connection]) -> JsonObject:
    catalog = published.catalog
    return {
        "resources": _listed(catalog.resources),
        "resourceTemplates": _listed(catalog.resource_templates),
    }


def _listed(entries: Sequence[Entry]) -> list[Json]:
    """Return the entries as the server sent them; one parse for all."""
    parsed: list[Json] = orjson.loads(b"[" + b",".join(entry.raw for entry in entries) + b"]")
    return parsed


def _document(snapshot: WorkspaceSnapshot[Connection], server: str, uri: str) -> JsonObject:
    published = published_server(snapshot, server)
    text = document(server, published.registry, published.withheld)
    return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}
