"""How the text of a variable becomes the value of a setting. SPEC §settings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app import setting_values as values
from app.setting_values import is_loopback_bind, is_name_pattern_of


@pytest.mark.spec("settings")
@pytest.mark.parametrize(
    "kind, text, expected",
    [
        (values.Port, "0", 0),
        (values.Port, "65535", 65535),
        (values.PositiveInt, "86400000", 86_400_000),
        (values.CountOrZero, "0", 0),
        (values.BindAddress, "0.0.0.0", "0.0.0.0"),
        (values.BindAddress, "[::1]", "::1"),
        (values.BindAddress, "::", "::"),
        (values.BindAddress, "my-host.example", "my-host.example"),
        (values.Token, "none", "none"),
        (values.Token, "s3cret-~", "s3cret-~"),
        (values.NamePatterns, '["*", "GITHUB_*", "T"]', ("*", "GITHUB_*", "T")),
        (values.NamePatterns, " [] ", ()),
        (values.Commands, '["/My App/srv", "uvx"]', ("/My App/srv", "uvx")),
        (
            values.HostHeaders,
            '["h", "h:80", "*.h.example", "[::1]:80"]',
            ("h", "h:80", "*.h.example", "[::1]:80"),
        ),
        (values.Origins, '["https://h", "vscode-webview://x:1"]', ("https://h", "vscode-webview://x:1")),
        (values.HostsRule, "ANY", "any"),
        (values.HostsRule, "public", "public"),
        (
            values.HostsRule,
            '["*.h.example", "10.0.0.0/8", "[::1]", "fd00::/8"]',
            ("*.h.example", "10.0.0.0/8", "[::1]", "fd00::/8"),
        ),
        (values.DatabaseUrl, "sqlite+aiosqlite:////var/x.db", "sqlite+aiosqlite:////var/x.db"),
        (values.DatabaseUrl, "sqlite:///x.db", "sqlite:///x.db"),
        (values.DatabaseUrl, "/var/x.db", "/var/x.db"),
        (values.ProxyUrl, "http://u:p@proxy:3128", "http://u:p@proxy:3128"),
    ],
)
def test_good_text_becomes_its_value(kind: Any, text: str, expected: object) -> None:
    assert TypeAdapter(kind).validate_python(text) == expected
    assert TypeAdapter(kind).validate_python(expected) == expected


BAD: list[tuple[Any, str]] = [
    (values.Port, "65536"),
    (values.Port, "-1"),
    (values.Port, "1.0"),
    (values.Port, " 1"),
    (values.Port, "1_0"),
    (values.Port, "\u0661"),
    (values.Port, "9" * 5000),
    (values.PositiveInt, "0"),
    (values.BindAddress, "a b"),
    (values.BindAddress, "http://h"),
    (values.BindAddress, "h:80"),
    (values.Token, "a b"),
    (values.Token, "a!c"),
    (values.Token, "ü"),
    (values.Token, "a\n"),
    (values.Token, "None"),
    (values.NamePatterns, "*"),
    (values.NamePatterns, '"*"'),
    (values.NamePatterns, "[1]"),
    (values.NamePatterns, '["A*B"]'),
    (values.NamePatterns, '["A-B"]'),
    (values.NamePatterns, '[""]'),
    (values.NamePatterns, "["),
    (values.Commands, '[""]'),
    (values.HostHeaders, '["https://h"]'),
    (values.HostHeaders, '["*"]'),
    (values.Origins, '["*"]'),
    (values.Origins, '["null"]'),
    (values.Origins, '["https://h/"]'),
    (values.HostsRule, "private"),
    (values.HostsRule, '["http://h"]'),
    (values.HostsRule, '["10.0.0.0/99"]'),
    (values.HostsRule, '[".h"]'),
    (values.DatabaseUrl, "postgresql://h/x"),
    (values.DatabaseUrl, "sqlite+aiosqlite://"),
    (values.DatabaseUrl, "sqlite+aiosqlite:///"),
    (values.DatabaseUrl, "sqlite+aiosqlite:///:memory:"),
    (values.DatabaseUrl, "sqlite+aiosqlite://host/x.db"),
    (values.ProxyUrl, "proxy:3128"),
    (values.ProxyUrl, "socks5://h"),
    (values.ProxyUrl, "http://"),
    (values.ProxyUrl, "http://h:99999"),
    (values.ProxyUrl, "http://h\r\n"),
]


@pytest.mark.spec("settings")
@pytest.mark.parametrize("kind, text", BAD)
def test_bad_text_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(text)


@pytest.mark.spec("references")
@given(st.text(), st.text())
def test_a_pattern_covers_a_prefix_or_one_name(prefix: str, rest: str) -> None:
    assert is_name_pattern_of(f"{prefix}*", prefix + rest)
    assert is_name_pattern_of(prefix + "x", prefix + "x")
    assert not is_name_pattern_of(f"{prefix}x*", f"{prefix}y{rest}")


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "host, is_loopback",
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("my-host", False),
        ("0", False),
        ("", False),
    ],
)
def test_a_bind_that_other_machines_reach_is_not_loopback(host: str, is_loopback: bool) -> None:
    assert is_loopback_bind(host) == is_loopback
