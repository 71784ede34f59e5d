"""The command ``list``: what is attached, and how each server is. SPEC §cli."""

import typer

from app.cli.session import (
    HomeOption,
    JsonOption,
    TokenFileOption,
    UrlOption,
    WorkspaceOption,
    open_session,
    perform,
)


def list_servers(
    context: typer.Context,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show the servers of a workspace and how each one is."""
    session = open_session(
        context,
        "workspace.mcp.list",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )

    def work() -> None:
        result = session.act()
        session.end(result, lambda: session.screen.show_servers(workspace, result))

    perform(session, work)
