"""Takes a person through one sign-in: opens the page, and gets the URL that the browser was sent back to. SPEC §cli.

The URL comes from a listener on loopback where the redirect URL leads there, and from the keyboard otherwise.
"""

import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from rich.text import Text

from app.cli.browser import open_page
from app.cli.callback_listener import CallbackListener, listening_for
from app.cli.printable import one_line, printable
from app.cli.screen import Screen

PENDING_SECONDS = 600.0
"""No sign-in is pending for longer. SPEC §oauth."""
PASTE = "Paste the URL that the browser was sent to: "
PASTE_TOO = "Waiting for the browser. Where it is on another machine, paste the URL that it was sent to: "


class SignInLeft(Exception):
    """Nobody is there to sign in, the person left, or the time is over."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever sits at the terminal."""

    screen: Screen
    ask: Callable[[str], str]
    """Shows a prompt and returns the line that was typed; raises EOFError where the person left."""
    browse: Callable[[str], bool] = open_page
    """Opens a page; whether that worked."""


def callback_of(person: Person, url: str, *, expires_at: str) -> str:
    """Return the URL that the browser was sent back to.

    Raises:
        SignInLeft: there is none.
    """
    screen = person.screen
    with listening_for(url) as listener:
        if listener is None and not screen.has_person:
            raise SignInLeft
        screen.note(Text.assemble("Sign in at ", (one_line(host_of(url)), "bold yellow"), ":"))
        screen.note(f"  {printable(url)}")
        opened = person.browse(url)
        screen.note("Opened in the browser." if opened else "Open it in a browser.")
        try:
            return _awaited(person, listener, time.monotonic() + _seconds_until(expires_at))
        except EOFError:
            raise SignInLeft from None


def host_of(url: str) -> str:
    """Return the host of a URL as a person can judge it."""
    try:
        return (urlsplit(url).hostname or "").encode("idna").decode()
    except ValueError:
        return "?"


def _awaited(person: Person, listener: CallbackListener | None, deadline: float) -> str:
    """Return what comes first: the callback of the listener or a line of the keyboard."""
    has_person = person.screen.has_person
    if has_person:
        sys.stderr.write(PASTE if listener is None else PASTE_TOO)
        sys.stderr.flush()
    sources = [source for source in (listener, sys.stdin if has_person else None) if source is not None]
    while (seconds := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select(sources, [], [], seconds)
        if listener is not None and listener.callback is not None:
            if has_person:
                person.screen.note("")
            return listener.callback
        if ready and (pasted := person.ask("").strip()):
            if pasted.startswith(("http://", "https://")):
                return pasted
            person.screen.note("It begins with http:// or https://. Paste the whole of it:")
    raise SignInLeft


def _seconds_until(expires_at: str) -> float:
    try:
        left = (datetime.fromisoformat(expires_at) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return PENDING_SECONDS
    return min(max(left, 0.0), PENDING_SECONDS)
