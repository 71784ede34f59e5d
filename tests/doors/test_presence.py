"""presence.py: who watches for a client's end hears of it once."""

import pytest

from app.doors.presence import KEY, Presence, presence_of

pytestmark = pytest.mark.spec("agui")


def test_who_watches_hears_of_the_end_once_and_who_forgot_does_not() -> None:
    presence, heard = Presence(), list[str]()

    def forgotten() -> None:
        heard.append("forgotten")

    presence.watch(lambda: heard.append("watching"))
    presence.watch(forgotten)
    presence.forget(forgotten)
    presence.end()
    presence.end()
    assert heard == ["watching"]


def test_who_comes_after_the_end_hears_of_it_at_once() -> None:
    presence, heard = Presence(), list[str]()
    presence.end()
    presence.watch(lambda: heard.append("late"))
    assert heard == ["late"]


def test_another_server_tells_of_no_presence() -> None:
    presence = Presence()
    assert presence_of({KEY: presence}) is presence
    assert presence_of({}) is None
