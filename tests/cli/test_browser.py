"""Where there is a browser, and what it is started on. SPEC §cli."""

import sys
from pathlib import Path

import pytest

from app.cli.browser import has_browser, open_page

pytestmark = pytest.mark.spec("cli")


@pytest.mark.skipif(sys.platform == "darwin", reason="there always is one")
@pytest.mark.parametrize(
    "environment, is_there",
    [({}, False), ({"DISPLAY": ""}, False), ({"DISPLAY": ":0"}, True), ({"BROWSER": "firefox"}, True)],
)
def test_a_page_would_not_open_in_the_terminal_itself(environment: dict[str, str], is_there: bool) -> None:
    assert has_browser(environment) is is_there


def test_a_web_page_is_opened_in_the_browser_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {seen}\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    assert open_page("https://as.example/authorize?a=b&c=d")
    assert not open_page("file:///etc/passwd")
    assert not open_page("--version")
    assert seen.read_text() == "https://as.example/authorize?a=b&c=d\n"
