"""The command ``call``: one tool call over an AG-UI run, with progress and proposals. SPEC §cli, §calls."""

import sys
from typing import Annotated

import typer

from app.cli import completion
from app.cli.arguments import parse
from app.cli.client import DaemonClient
from app.cli.client_command import client_command
from app.cli.conversation import hold
from app.cli.exit_status import ExitStatus
from app.cli.session import Session
from app.core.json_value import JsonObject

KIND = "workspace.mcp.call"


@client_command(KIND)
def call(
    session: Session,
    *,
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="The attached server.", autocompletion=completion.servers)
    ],
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="Its tool, by its exact name.", autocompletion=completion.tools),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE… | JSON | -", help="Its arguments; - reads JSON from standard input."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the proposal instead of asking.")] = False,
) -> None:
    """Call a tool and print what it answers."""
    _call(session, server, tool, arguments or [], accepts_proposals=yes)


def _call(session: Session, server: str, tool: str, words: list[str], *, accepts_proposals: bool) -> None:
    with session.client() as client:
        arguments = parse(
            words,
            read_input=sys.stdin.buffer.read,
            schema=lambda: input_schema(client, session.workspace, server, tool),
        )
        action: JsonObject = {"kind": KIND, "server": server, "tool": tool, "arguments": arguments}
        title = f"{server} · {tool}"
        result = hold(session, client, action, title=title, accepts_proposals=accepts_proposals)
    said_no = bool(result.get("isError") or result.get("rejected"))
    status = ExitStatus.TOOL_SAID_NO if said_no else ExitStatus.OK
    session.end(result, lambda: session.screen.show_call_result(result), status)


def input_schema(client: DaemonClient, workspace: str, server: str, tool: str) -> JsonObject:
    """Return the input schema of an enabled tool, or an empty one where there is no such tool.

    Raises:
        CommandFailure: the daemon did not say.
    """
    kind = "workspace.mcp.tools"
    tools = client.act(workspace, {"kind": kind, "server": server, "schemas": True}).get("tools")
    for entry in tools if isinstance(tools, list) else []:
        if (
            isinstance(entry, dict)
            and entry.get("tool") == tool
            and isinstance(entry.get("inputSchema"), dict)
        ):
            return entry["inputSchema"]  # pyright: ignore[reportReturnType] checked in the condition
    return {}
