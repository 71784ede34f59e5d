"""Which Host and Origin headers are served."""

import pytest

from app.doors.allow_lists import HostAllowList, OriginAllowList
from app.settings import Settings

pytestmark = pytest.mark.spec("security")


def hosts(bind: str = "127.0.0.1", *allowed: str) -> HostAllowList:
    return HostAllowList(Settings(host=bind, allowed_hosts=allowed))


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:3044", "127.0.0.1", "127.0.0.1:80", "127.9.9.9:1", "[::1]", "[::1]:3044"],
)
def test_loopback_names_are_served_on_any_port(host: str) -> None:
    assert hosts().admits(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:3044",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "localhost:3044:3044",
        "localhost:port",
        "localhost, evil.example",
        "localhost/",
        " localhost",
        "10.0.0.1",
        "0.0.0.0:3044",
        "[::]",
        "[::1",
        "loc\xe0lhost",
    ],
)
def test_every_other_host_is_refused(host: str) -> None:
    assert not hosts().admits(host)


@pytest.mark.parametrize(
    "bind, host, is_served",
    [
        ("192.0.2.7", "192.0.2.7:3044", True),
        ("192.0.2.7", "192.0.2.8:3044", False),
        ("box.example", "BOX.example", True),
        ("2001:db8::1", "[2001:db8::1]:3044", True),
        ("0.0.0.0", "0.0.0.0", False),
        ("::", "[::]", False),
    ],
)
def test_the_bind_is_served_unless_it_is_every_address(bind: str, host: str, is_served: bool) -> None:
    assert hosts(bind).admits(host) is is_served


@pytest.mark.parametrize(
    "allowed, host, is_served",
    [
        ("mcp.example", "mcp.example", True),
        ("MCP.example", "mcp.EXAMPLE:443", True),
        ("mcp.example", "a.mcp.example", False),
        ("mcp.example:443", "mcp.example:443", True),
        ("mcp.example:443", "mcp.example:444", False),
        ("mcp.example:443", "mcp.example", False),
        ("*.mcp.example", "a.b.mcp.example:1", True),
        ("*.mcp.example", "mcp.example", False),
        ("*.mcp.example", "evilmcp.example", False),
        ("*", "evil.example", False),
        ("*.", "evil.example", False),
        ("", "", False),
    ],
)
def test_the_operator_adds_names(allowed: str, host: str, is_served: bool) -> None:
    assert hosts("127.0.0.1", allowed).admits(host) is is_served
    assert hosts("127.0.0.1", allowed).admits("localhost")


def test_names_are_admitted_again_and_others_refused_again_however_many_there_are() -> None:
    allow_list = hosts("127.0.0.1", "*.good.example")
    long = "a" * 1000
    for _ in range(2):
        for name in (*map(str, range(100)), long):
            assert allow_list.admits(f"{name}.good.example")
            assert not allow_list.admits(f"{name}.evil.example")


@pytest.mark.parametrize(
    "allowed, origin, is_admitted",
    [
        ("https://app.example", "https://app.example", True),
        ("https://app.example", "HTTPS://APP.example:443", True),
        ("http://app.example:80", "http://app.example", True),
        ("http://localhost:5173", "http://localhost:5173", True),
        ("http://[::1]:5173", "http://[::1]:5173", True),
        ("http://localhost:5173", "http://localhost:5174", False),
        ("https://app.example", "http://app.example", False),
        ("https://app.example", "https://app.example.evil.example", False),
        ("https://app.example", "https://app.example/", False),
        ("https://app.example", "https://user@app.example", False),
        ("https://app.example", "https://app.example https://evil.example", False),
        ("https://app.example", "", False),
        ("null", "null", False),
        ("*", "https://evil.example", False),
        ("*", "*", False),
        ("https://*", "https://evil.example", False),
        ("https://app.example:99999", "https://app.example:99999", False),
        ("file://", "file://", False),
    ],
)
def test_an_origin_is_admitted_only_as_it_is_listed(allowed: str, origin: str, is_admitted: bool) -> None:
    assert OriginAllowList([allowed]).admits(origin) is is_admitted


def test_no_origin_is_admitted_by_default() -> None:
    assert not OriginAllowList(()).admits("http://localhost:3044")
