"""Whether servers can be reached and speak the one revision: asked of the running daemon, or found out here. SPEC §cli.

Without a daemon each service default is prepared once, as a daemon would, and closed again.
"""

from collections.abc import Iterator, Mapping

import anyio
from anyio.abc import TaskGroup

from app.cli.client import DaemonClient
from app.cli.failures import CommandFailure
from app.cli.findings import Finding, Verdict
from app.cli.members import objects_of, text_of
from app.cli.remedies import command
from app.configuration import Configuration
from app.connections.connector import Connector
from app.core.defaults import Definition
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.core.problem import Problem, Stage
from app.ports import Connection, Target

WORKSPACE = "doctor"
"""The name under which a connection is made that belongs to no workspace."""


def of_daemon(client: DaemonClient, workspace: str) -> list[Finding]:
    """Return a finding for each effective server of a workspace of the running daemon."""
    try:
        listed = client.act(workspace, {"kind": "workspace.mcp.list"})
    except CommandFailure as failure:
        return [Finding("daemon", Verdict.FAULT, str(failure), "Look into its log, or restart it.")]
    same = "" if workspace == "default" else f" -w {workspace}"
    return [_told(server, same) for server in objects_of(listed.get("servers"))]


def _told(server: JsonObject, same: str) -> Finding:
    name = text_of(server, "name")
    match server.get("state"):
        case "connected":
            return _good(name, text_of(server, "protocolVersion"))
        case "authorization-required":
            fix = f"plurnk-mcpd authorize{same} {name}"
            return Finding(f"server {name}", Verdict.WARNING, "asks for a sign-in", fix)
        case _:
            problem = server.get("problem")
            fault: JsonObject = problem if isinstance(problem, dict) else {}
            fix = command(fault, same) or f"plurnk-mcpd reconnect{same} {name}"
            return Finding(
                f"server {name}", Verdict.FAULT, text_of(fault, "detail") or "it is not connected", fix
            )


def of_defaults(configuration: Configuration) -> list[Finding]:
    """Return a finding for each service default, after connecting to all of them at once."""
    return anyio.run(_of_defaults, configuration)


async def _of_defaults(configuration: Configuration) -> list[Finding]:
    found: dict[str, Finding] = {}
    connector = Connector(configuration.settings, configuration.environment.values, Mask())
    try:
        async with anyio.create_task_group() as group:
            for name, definition in configuration.defaults.items():
                group.start_soon(_reach, connector, definition, found, name)
    finally:
        with anyio.CancelScope(shield=True):
            await connector.close()
    return [*_in_order(found)]


def _in_order(found: Mapping[str, Finding]) -> Iterator[Finding]:
    for name in sorted(found):
        yield found[name]


async def _reach(connector: Connector, definition: Definition, found: dict[str, Finding], name: str) -> None:
    """Prepare one connection and close it again."""
    async with anyio.create_task_group() as group:
        found[name] = await _reached(connector, definition, group)
        group.cancel_scope.cancel()


async def _reached(connector: Connector, definition: Definition, group: TaskGroup) -> Finding:
    target = Target(workspace=WORKSPACE, definition=definition, source="service", is_explicit=False)
    try:
        connection = await connector.open(target, group, _unheard)
    except Problem as problem:
        fix = command(problem.document(Stage.MANAGEMENT), "")
        return Finding(f"server {definition.name}", Verdict.FAULT, problem.detail, fix)
    try:
        return _good(definition.name, connection.catalog.protocol_version)
    finally:
        with anyio.CancelScope(shield=True):
            await connection.retire()


def _unheard(_connection: Connection) -> None:
    """Nobody watches a connection that is closed at once."""


def _good(name: str, revision: str) -> Finding:
    return Finding(f"server {name}", Verdict.GOOD, f"connected, speaks {revision}")
