"""The command ``cancel``: ends an operation that runs or waits for an answer. SPEC §cli, §calls."""

from typing import Annotated

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


def cancel(
    context: typer.Context,
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="Its id, as watch shows it.")],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Cancel an operation that runs or waits for an answer."""
    session = open_session(
        context,
        "workspace.mcp.cancel",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )

    def work() -> None:
        result = session.act(operation=operation)
        session.end(result, lambda: session.screen.say(f"✓ cancelled {operation} (workspace {workspace})"))

    perform(session, work)
