"""The command ``authorize``: starts or continues the sign-in of a server. SPEC §cli, §oauth."""

from typing import Annotated

import typer

from app.cli.browser import open_page
from app.cli.changes import ServerName
from app.cli.client import DaemonClient
from app.cli.client_command import client_command
from app.cli.conversation import ask
from app.cli.failures import ProblemAnswer, QuestionOpen, SignInOpen
from app.cli.members import objects_of, text_of
from app.cli.questions import operation_of
from app.cli.session import Session
from app.cli.sign_in import Person, SignInLeft, callback_of
from app.core.json_value import JsonObject

KIND = "workspace.mcp.oauth.complete"
ROUNDS_MAX = 5
"""Pages of one sign-in, and attempts at them: what needs more needs somebody to look into it."""


@client_command(KIND)
def authorize(
    session: Session,
    name: ServerName,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page, or print it only.")
    ] = True,
) -> None:
    """Sign in to a server that asks for it, in a browser."""
    person = Person(session.screen, ask, open_page if browser else _leave_closed)
    _authorize(session, name, person)


def _authorize(session: Session, name: str, person: Person) -> None:
    with session.client() as client:
        result = begun = _begun(client, session.workspace, name)
        for _ in range(ROUNDS_MAX):
            authorization = result.get("authorization")
            if not isinstance(authorization, dict):
                break
            result = _round(client, session, name, authorization, person)
    if isinstance(authorization := result.get("authorization"), dict):
        raise SignInOpen(session.workspace, name, authorization)
    if interrupts := objects_of(result.get("interrupts")):
        raise QuestionOpen(session.workspace, operation_of(interrupts), interrupts)
    session.end(result, lambda: _show(session, name, result, needed_none=result is begun))


def _begun(client: DaemonClient, workspace: str, name: str) -> JsonObject:
    """Return the sign-in that is pending for the server, else what connecting it anew answers."""
    pending = _pending(client, workspace, name)
    return pending or client.act(workspace, {"kind": "workspace.mcp.reconnect", "name": name})


def _pending(client: DaemonClient, workspace: str, name: str) -> JsonObject | None:
    listed = client.act(workspace, {"kind": "workspace.mcp.list"})
    return next((each for each in objects_of(listed.get("pending")) if each.get("name") == name), None)


def _round(
    client: DaemonClient, session: Session, name: str, authorization: JsonObject, person: Person
) -> JsonObject:
    """Return what the daemon answers to the callback of one page; the same page again where it was none.

    Raises:
        SignInOpen: nobody came back from it.
        ProblemAnswer: the daemon refused for good.
    """
    try:
        callback = callback_of(
            person, text_of(authorization, "url"), expires_at=text_of(authorization, "expiresAt")
        )
    except SignInLeft:
        raise SignInOpen(session.workspace, name, authorization) from None
    try:
        return client.act(session.workspace, {"kind": KIND, "name": name, "callbackUrl": callback})
    except ProblemAnswer as failure:
        if failure.problem.get("code") != "oauth-callback-invalid":
            raise
        # It is pending still where the callback was not that of this sign-in.
        pending = _pending(client, session.workspace, name)
        if pending is None:
            raise
        session.screen.show_failure(failure)
        return pending


def _leave_closed(_url: str) -> bool:
    return False


def _show(session: Session, name: str, result: JsonObject, *, needed_none: bool) -> None:
    server = result.get("server")
    if isinstance(server, dict):
        verb = "needs no sign-in; reconnected" if needed_none else "signed in to"
        session.screen.show_server(verb, session.workspace, server)
        return
    session.screen.say(f"✓ signed in to {name} (workspace {session.workspace})")
    if "content" in result:
        session.screen.show_call_result(result)
