"""One sign-in: the page is opened, and the browser comes back to the listener or to the keyboard. SPEC §cli, §oauth."""

import io
import os
import sys
import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from rich.console import Console
from typing_extensions import override

from app.cli.conversation import ask
from app.cli.screen import Screen
from app.cli.sign_in import Person, SignInLeft, callback_of
from tests.support.redirecting import authorization_url, free_port, redirecting_server

pytestmark = pytest.mark.spec("cli", "oauth")

ELSEWHERE = authorization_url("https://as.example/authorize", "https://app.example/back")
PASTED = "https://app.example/back?code=c&state=state-1"


class Attended(Screen):
    """A screen with somebody in front of it."""

    @property
    @override
    def has_person(self) -> bool:
        return True


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[str], None]]:
    """Types, into what is standard input meanwhile."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as keys:
        monkeypatch.setattr(sys, "stdin", stdin)

        def press(text: str) -> None:
            keys.write(text)
            keys.flush()
            if text == "\x04":
                keys.close()

        yield press


def soon(seconds: float = 60) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def person(kind: type[Screen], written: io.StringIO, browse: Callable[[str], bool]) -> Person:
    console = Console(file=written, width=60)
    return Person(kind(console, console), ask, browse)


def closed(_url: str) -> bool:
    return False


@pytest.mark.parametrize("kind", [Screen, Attended])
def test_a_browser_that_comes_back_needs_nobody_at_the_keyboard(
    kind: type[Screen], written: io.StringIO, keyboard: Callable[[str], None]
) -> None:
    redirect = f"http://127.0.0.1:{free_port()}/back"
    with redirecting_server() as page:
        url = authorization_url(page, redirect)

        def browse(opened: str) -> bool:
            threading.Thread(target=httpx2.get, args=(opened,), kwargs={"follow_redirects": True}).start()
            return True

        callback = callback_of(person(kind, written, browse), url, expires_at=soon())
    assert callback.startswith(f"{redirect}?code=code-canary-1&state=state-1")
    assert url in written.getvalue()
    assert "Sign in at 127.0.0.1:" in written.getvalue()
    assert "Opened in the browser." in written.getvalue()


def test_a_browser_elsewhere_is_pasted(written: io.StringIO, keyboard: Callable[[str], None]) -> None:
    keyboard(f"\ncode=c\n {PASTED} \n")
    assert callback_of(person(Attended, written, closed), ELSEWHERE, expires_at=soon()) == PASTED
    assert "Open it in a browser." in written.getvalue()
    assert "It begins with http:// or https://" in written.getvalue()


def test_a_browser_on_another_machine_is_pasted_although_we_listen(
    written: io.StringIO, keyboard: Callable[[str], None]
) -> None:
    redirect = f"http://127.0.0.1:{free_port()}/back"
    keyboard(f"{redirect}?code=c&state=state-1\n")
    url = authorization_url("https://as.example/authorize", redirect)
    pasted = callback_of(person(Attended, written, closed), url, expires_at=soon())
    assert pasted == f"{redirect}?code=c&state=state-1"


def test_a_sign_in_is_left_by_nobody_by_who_leaves_and_when_its_time_is_over(
    written: io.StringIO, keyboard: Callable[[str], None]
) -> None:
    opened: list[str] = []
    with pytest.raises(SignInLeft):
        callback_of(
            person(Screen, written, lambda url: bool(opened.append(url))), ELSEWHERE, expires_at=soon()
        )
    assert opened == []
    with pytest.raises(SignInLeft):
        callback_of(person(Attended, written, closed), ELSEWHERE, expires_at=soon(-1))
    keyboard("\x04")
    with pytest.raises(SignInLeft):
        callback_of(person(Attended, written, closed), ELSEWHERE, expires_at="no time")
