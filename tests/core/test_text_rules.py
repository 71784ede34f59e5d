"""What single texts of a definition may be. SPEC §definition."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import text_rules
from app.core.text_rules import TextRule, control_fault, is_loopback_host, lone_surrogate_fault

RULES = {name: rule for name, rule in vars(text_rules).items() if isinstance(rule, TextRule)}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tangled = st.lists(
    st.sampled_from(
        ["a", "A", "-", "=", " ", "\t", "\n", "$", "{", "}", "${", "$${", "${A}", "\0", "\x7f", "é", '"']
    )
).map("".join)
urls = st.lists(
    st.sampled_from(
        [
            "http",
            "HTTPS",
            "https",
            "://",
            "h",
            "[::1]",
            "[",
            "@",
            "#",
            "?",
            "/",
            ":",
            "80",
            "..",
            " ",
            "\\",
            "é",
            "\n",
            "${A}",
        ]
    ),
    max_size=9,
).map("".join)


@pytest.mark.spec("definition")
@pytest.mark.parametrize("name", RULES)
@given(text=texts | tangled | urls)
def test_a_schema_pattern_says_no_more_than_its_rule_and_an_exact_one_no_less(name: str, text: str) -> None:
    rule = RULES[name]
    is_good = rule.fault(text) is None and "\0" not in text
    matches = jsonschema_rs.Draft202012Validator({"pattern": rule.pattern}).is_valid(text)
    if is_good:
        assert matches
    elif rule.is_exact:
        assert not matches


@pytest.mark.spec("definition")
@pytest.mark.parametrize("name", RULES)
@given(text=st.text(min_size=4) | tangled)
def test_a_fault_never_quotes_its_text(name: str, text: str) -> None:
    canary = f"\x01{text}canary"
    assert "canary" not in (RULES[name].fault(canary) or "")


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "https://h/",
        "HTTP://h:8080/mcp?key=v&x=%20",
        "http://127.0.0.1:1/mcp",
        "http://[::1]:65535/mcp",
        "https://bücher.example/mcp",
        "https://a_b.example./mcp",
        "https://h/é/{x}",
        "https://h/a@b",
    ],
)
def test_good_server_urls(url: str) -> None:
    assert text_rules.SERVER_URL.fault(url) is None


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "//h/x",
        "http:",
        "http://",
        "http:///x",
        "http://:80/",
        "http://h:/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:x/",
        "http://h:\uff18\uff10/",
        "ftp://h/",
        "ws://h/",
        "file:///x",
        "http://u@h/",
        "http://u:canary@h/",
        "http://@h/",
        "http://h/#f",
        "http://h/#",
        "http://h /",
        " http://h/",
        "http://h/\n",
        "http://h/\r\nX: y",
        "http://h\\@evil/",
        "http://h/\u00a0",
        'http://h/"',
        "http://[::1/",
        "http://[x]/",
        "http://[::1]x/",
        "http://a..b/",
        "http://./",
        "http://%41/",
        "http://" + "a" * 64 + "/",
        "http://" + "a." * 200 + "/",
        "http://a\uff0fb/",
        "http://${H}/",
        "http://h/${P}",
        "http://h/$${P}",
    ],
)
def test_bad_server_urls(url: str) -> None:
    fault = text_rules.SERVER_URL.fault(url)
    assert fault is not None
    assert "canary" not in fault
    assert ("user information" in fault) == ("@h/" in url)


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "rule, text, is_good",
    [
        (text_rules.REDIRECT_URL, "http://127.0.0.1:7777/cb", True),
        (text_rules.REDIRECT_URL, "http://localhost/cb", True),
        (text_rules.REDIRECT_URL, "http://[::1]:1/cb", True),
        (text_rules.REDIRECT_URL, "https://app.example/cb?x=1", True),
        (text_rules.REDIRECT_URL, "http://app.example/cb", False),
        (text_rules.REDIRECT_URL, "http://localhost.evil.example/cb", False),
        (text_rules.REDIRECT_URL, "com.example.app:/cb", False),
        (text_rules.REDIRECT_URL, "https://app.example/cb#f", False),
        (text_rules.CLIENT_METADATA_URL, "https://app.example/client.json", True),
        (text_rules.CLIENT_METADATA_URL, "https://app.example/", False),
        (text_rules.CLIENT_METADATA_URL, "https://app.example", False),
        (text_rules.CLIENT_METADATA_URL, "https://app.example?x=/a", False),
        (text_rules.CLIENT_METADATA_URL, "https://app.example/a/../client.json", False),
        (text_rules.CLIENT_METADATA_URL, "http://127.0.0.1/client.json", False),
        (text_rules.ISSUER, "https://as.example", True),
        (text_rules.ISSUER, "http://127.0.0.1:9/gw/alpha", True),
        (text_rules.ISSUER, "https://as.example/?", False),
        (text_rules.ISSUER, "http://as.example", False),
        (text_rules.HEADER_NAME, "X-Api-Key", True),
        (text_rules.HEADER_NAME, "cookie", True),
        (text_rules.HEADER_NAME, "", False),
        (text_rules.HEADER_NAME, "X A", False),
        (text_rules.HEADER_NAME, "X:A", False),
        (text_rules.HEADER_NAME, "Ä", False),
        (text_rules.HEADER_NAME, "X-B\r\nX-Evil", False),
        (text_rules.HEADER_NAME, "${A}", False),
        (text_rules.HEADER_NAME, "Content-LENGTH", False),
        (text_rules.HEADER_NAME, "transfer-encoding", False),
        (text_rules.HEADER_NAME, "Host", False),
        (text_rules.HEADER_NAME, "MCP-Protocol-Version", False),
        (text_rules.HEADER_NAME, "mcp-param-x", False),
        (text_rules.HEADER_VALUE, "", True),
        (text_rules.HEADER_VALUE, "a ${T} ü", True),
        (text_rules.HEADER_VALUE, "b\r\nX-Evil: 1", False),
        (text_rules.HEADER_VALUE, "a\tb", False),
        (text_rules.HEADER_VALUE, "a\x85b", False),
        (text_rules.ENVIRONMENT_NAME, "a b.c", True),
        (text_rules.ENVIRONMENT_NAME, "", False),
        (text_rules.ENVIRONMENT_NAME, "A=B", False),
        (text_rules.ENVIRONMENT_NAME, "${V}", False),
        (text_rules.COMMAND, "/My App/srv $HOME *", True),
        (text_rules.COMMAND, "", False),
        (text_rules.COMMAND, "${V}", False),
        (text_rules.DIRECTORY, "", False),
        (text_rules.DIRECTORY, "${D}/x", True),
        (text_rules.CLIENT_ID, "a b", True),
        (text_rules.CLIENT_ID, "${C}", False),
        (text_rules.CLIENT_ID, "", False),
        (text_rules.SCOPE, "a b:c offline_access", True),
        (text_rules.SCOPE, "a  b", False),
        (text_rules.SCOPE, "", False),
        (text_rules.SCOPE, "${S}", False),
        (text_rules.SCOPE, "a\\b", False),
        (text_rules.SERVER_NAME, "a-1", True),
        (text_rules.SERVER_NAME, "A", False),
        (text_rules.SERVER_NAME, "file", False),
        (text_rules.SERVER_NAME, "a" * 65, False),
        (text_rules.TOOL_NAME, "Get_Row ツ", True),
        (text_rules.TOOL_NAME, "${T}", False),
    ],
)
def test_each_rule_by_example(rule: TextRule, text: str, is_good: bool) -> None:
    assert (rule.fault(text) is None) == is_good


@pytest.mark.spec("definition")
def test_control_characters_and_lone_surrogates_are_told() -> None:
    assert control_fault("a b ü") is None
    assert control_fault("a\rb") == "contains a control character"
    assert control_fault("a\udc80") == lone_surrogate_fault("\ud800") != None  # noqa: E711 both say something


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "host, is_loopback",
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("h", False),
        ("", False),
    ],
)
def test_loopback_hosts_are_known_by_name_or_address(host: str, is_loopback: bool) -> None:
    assert is_loopback_host(host) == is_loopback
