"""The command ``watch``: a workspace as it changes, as a screen, as lines or as JSON. SPEC §cli, §agui."""

import uuid
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.live import Live

from app.cli.client import DaemonClient
from app.cli.client_command import client_command
from app.cli.conversation import Answered, ending_of
from app.cli.dashboard import dashboard, line_of
from app.cli.failures import AnswerLost, CommandFailure
from app.cli.members import objects_of, text_of
from app.cli.session import Session, print_json
from app.cli.watched_state import Change, WatchedState
from app.core.json_value import JsonObject

LOOK_UP_SECONDS = 5.0
"""How long the screen may wait to learn where a sign-in leads."""
Show: TypeAlias = Callable[[list[Change]], None]


@client_command("workspace.mcp.watch")
def watch(
    session: Session,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="N", help="Stop after so long; else at Ctrl-C.")
    ] = None,
) -> None:
    """Follow a workspace: servers, sign-ins, operations, questions.

    Without a terminal each change is a line; with --json each is one object that holds the whole state.
    """
    _watch(session, seconds)


def _watch(session: Session, seconds: float | None) -> None:
    action: JsonObject = {"kind": session.kind}
    if seconds is not None:
        action["seconds"] = seconds
    state, urls = WatchedState(), dict[str, str]()
    with session.client() as client:
        run = client.run(session.workspace, thread=f"cli-{uuid.uuid4()}", action=action)
        with closing(run) as events, _shown(session, state, urls) as show:

            def observe(event: JsonObject) -> None:
                changes = state.take(event)
                if any(change.section == "pending" and change.entry for change in changes):
                    urls.update(_sign_in_urls(client, session.workspace))
                # An empty workspace has nothing to tell, and that is worth showing.
                if changes or event.get("type") == "STATE_SNAPSHOT":
                    show(changes)

            ending = ending_of(events, observe)
    if not isinstance(ending, Answered):
        raise AnswerLost("The watch ended with questions, which it cannot ask.", "Run it again.")
    session.end(ending.result, lambda: None)


def _sign_in_urls(client: DaemonClient, workspace: str) -> dict[str, str]:
    """Return where the pending sign-ins lead, which the state does not tell; empty where nobody says in time."""
    try:
        listed = client.act(workspace, {"kind": "workspace.mcp.list"}, seconds=LOOK_UP_SECONDS)
    except CommandFailure:
        return {}
    found: dict[str, str] = {}
    for entry in objects_of(listed.get("pending")):
        if isinstance(authorization := entry.get("authorization"), dict):
            found[text_of(entry, "name")] = text_of(authorization, "url")
    return found


@contextmanager
def _shown(session: Session, state: WatchedState, urls: dict[str, str]) -> Generator[Show]:
    """Give what shows the state after each change, in the way that suits where it goes."""
    out = session.screen.out
    if session.as_json:
        yield lambda _changes: print_json(
            {"kind": session.kind, "ok": True, "result": {"state": state.document}}
        )
    elif out.is_terminal:

        def whole(_changes: list[Change]) -> None:
            live.update(
                dashboard(state, urls, console=out, workspace=session.workspace, same=session.screen.same)
            )

        with Live(console=out) as live:
            yield whole
    else:

        def lines(changes: list[Change]) -> None:
            for change in changes:
                session.screen.say(line_of(change, urls))
            out.file.flush()

        yield lines
