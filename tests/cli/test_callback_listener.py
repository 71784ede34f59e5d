"""The listener takes the callback of its own sign-in and nothing else. SPEC §cli, §oauth."""

import select
import socket

import httpx2
import pytest

from app.cli.callback_listener import FOREIGN, TAKEN, listening_for
from tests.support.redirecting import authorization_url, free_port, redirecting_server

pytestmark = pytest.mark.spec("cli", "oauth")


def get(url: str) -> httpx2.Response:
    return httpx2.get(url, follow_redirects=True, trust_env=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_browser_is_sent_back_to_the_terminal(host: str, capfd: pytest.CaptureFixture[str]) -> None:
    redirect = f"http://{host}:{free_port()}/back"
    with redirecting_server() as page, listening_for(authorization_url(page, redirect)) as listener:
        assert listener is not None
        assert select.select([listener], [], [], 0) == ([], [], [])
        answered = get(authorization_url(page, redirect))
        assert (answered.status_code, TAKEN in answered.text) == (200, True)
        assert answered.headers["Cache-Control"] == "no-store"
        assert select.select([listener], [], [], 5)[0] == [listener]
        expected = f"{redirect}?code=code-canary-1&state=state-1&iss=http%3A%2F%2Fas.example"
        assert listener.callback == expected
        assert get(f"{redirect}?code=again&state=state-1").status_code == 200
        assert listener.callback == expected
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "target, status",
    [
        ("/favicon.ico", 404),
        ("/back/more?state=state-1", 404),
        ("/back", 400),
        ("/back?code=x&state=another", 400),
        ("/back?code=x&state=another&state=state-1", 400),
        ("http://127.0.0.1/back?state=state-1", 404),
    ],
)
def test_a_request_that_is_not_the_callback_is_answered_and_forgotten(target: str, status: int) -> None:
    port = free_port()
    with listening_for(authorization_url("https://as.example", f"http://127.0.0.1:{port}/back")) as listener:
        assert listener is not None
        with socket.create_connection(("127.0.0.1", port)) as browser, browser.makefile("rb") as answer:
            browser.sendall(f"GET {target} HTTP/1.0\r\n\r\n".encode())
            text = answer.read().decode()
        assert text.startswith(f"HTTP/1.0 {status} ")
        assert FOREIGN in text
        assert listener.callback is None


def test_the_port_is_free_again_afterwards() -> None:
    redirect = f"http://127.0.0.1:{free_port()}/back"
    for _ in range(2):
        with redirecting_server() as page, listening_for(authorization_url(page, redirect)) as listener:
            assert listener is not None
            assert get(authorization_url(page, redirect)).status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        authorization_url("https://as.example/a", "https://app.example/back"),
        authorization_url("https://as.example/a", "https://127.0.0.1:9/back"),
        authorization_url("https://as.example/a", "http://192.0.2.1:9/back"),
        authorization_url("https://as.example/a", "http://127.0.0.1:99999/back"),
        "https://as.example/a?state=x",
        "https://as.example/a?redirect_uri=http://127.0.0.1:9/back",
        "https://[",
    ],
)
def test_nobody_listens_where_the_browser_is_not_sent_back_to(url: str) -> None:
    with listening_for(url) as listener:
        assert listener is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_nobody_listens_on_a_port_that_is_taken(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        redirect = f"http://{host}:{other.getsockname()[1]}/back"
        with listening_for(authorization_url("https://as.example/a", redirect)) as listener:
            assert listener is None
