"""Service defaults from the environment. SPEC §defaults."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.defaults import parse_defaults
from app.core.definitions import parse_definition

A = "PLURNK_MCP_a"
LITERAL = "must be one complete ${NAME} reference and nothing else: a secret never stands in a definition"
MALFORMED = "contains a malformed reference: the only form is ${NAME}, and $${ stands for a literal ${"
USER_INFORMATION = "must not contain user information: use authorization or a header with a ${NAME} reference"
NEITHER = (
    "is neither a server, whose name has no '_' (use a hyphen), nor one of the companions"
    " _ARGS _CWD _ENV _HEADERS _BEARER _TOOLS _READ"
)


def faults(environment: dict[str, str]) -> list[str]:
    _, lines = parse_defaults(environment)
    assert all(line.isprintable() for line in lines)
    return lines


@pytest.mark.spec("defaults")
def test_a_default_is_the_definition_an_attach_would_carry() -> None:
    definitions, lines = parse_defaults(
        {
            "PATH": "/bin",
            "D": "/srv",
            "T": "secret-token",
            "PLURNK_HOST": "127.0.0.1",
            "PLURNK_MCP_CONNECT_TIMEOUT": "1",
            "PLURNK_MCP_REQUEST_TIMEOUT": "1",
            "PLURNK_MCP_Files": "/My App/srv",
            "PLURNK_MCP_FILES_ARGS": '["-d", "${D}", ""]',
            "PLURNK_MCP_files_CWD": "${D}",
            "PLURNK_MCP_files_ENV": '{"K": "$${D}"}',
            "PLURNK_MCP_files_TOOLS": '["x", "y"]',
            "PLURNK_MCP_files_READ": '["x"]',
            "PLURNK_MCP_GITHUB-2": "HTTPS://h.example/mcp",
            "PLURNK_MCP_github-2_HEADERS": '{"X-A": "b ${T}"}',
            "PLURNK_MCP_github-2_BEARER": "${T}",
            "PLURNK_MCP_github-2_TOOLS": "[]",
        }
    )
    assert (list(definitions), lines) == (["files", "github-2"], [])
    assert definitions["files"] == parse_definition(
        {
            "name": "files",
            "transport": "stdio",
            "command": "/My App/srv",
            "args": ["-d", "${D}", ""],
            "cwd": "${D}",
            "env": {"K": "$${D}"},
            "tools": ["x", "y"],
            "read": ["x"],
        }
    )
    assert definitions["github-2"] == parse_definition(
        {
            "name": "github-2",
            "transport": "http",
            "url": "HTTPS://h.example/mcp",
            "headers": {"X-A": "b ${T}"},
            "authorization": {"type": "bearer", "token": "${T}"},
            "tools": [],
        }
    )


@pytest.mark.spec("defaults")
@pytest.mark.parametrize(
    "environment, expected",
    [
        ({A: "/bin/x", f"{A}_ARGS": '["x"'}, [f"{A}_ARGS: is not valid JSON"]),
        ({A: "/bin/x", f"{A}_ARGS": "[NaN]"}, [f"{A}_ARGS: is not valid JSON"]),
        ({A: "/bin/x", f"{A}_ARGS": "[" * 100_000}, [f"{A}_ARGS: is not valid JSON"]),
        ({A: "/bin/x", f"{A}_ARGS": "9" * 5000}, [f"{A}_ARGS: is not valid JSON"]),
        ({A: "/bin/x", f"{A}_ARGS": "{}"}, [f"{A}_ARGS: must be an array of strings"]),
        ({A: "/bin/x", f"{A}_ARGS": "[1]"}, [f"{A}_ARGS: /0: must be a string"]),
        ({A: "/bin/x", f"{A}_ENV": '{"K":1}'}, [f"{A}_ENV: /K: must be a string"]),
        (
            {A: "/bin/x", f"{A}_ENV": '{"K":"1","K":"2"}'},
            [f"{A}_ENV: is a JSON object that has a member twice"],
        ),
        ({f"{A}_ARGS": "[]"}, [f"{A}_ARGS: belongs to a server 'a', and no {A} is set"]),
        (
            {A: "https://h.example", f"{A}_CWD": "/"},
            [f"{A}_CWD: belongs to a stdio server, and {A} is a URL"],
        ),
        (
            {A: "/bin/x", f"{A}_BEARER": "${T}"},
            [f"{A}_BEARER: belongs to an http server, and {A} is an executable"],
        ),
        (
            {
                "T": "t",
                A: "https://h.example",
                f"{A}_BEARER": "${T}",
                f"{A}_HEADERS": '{"aUTHORIZATION":"x"}',
            },
            [f"{A}_HEADERS: /aUTHORIZATION: must not stand beside authorization, which sets this header"],
        ),
        (
            {A: "https://h.example", f"{A}_BEARER": "canary-literal"},
            [f"{A}_BEARER: {LITERAL}"],
        ),
        (
            {A: "https://h.example", f"{A}_BEARER": "${NOPE}"},
            [f"{A}_BEARER: references NOPE, which has no value"],
        ),
        (
            {A: "https://h.example", f"{A}_BEARER": "${EMPTY}", "EMPTY": ""},
            [f"{A}_BEARER: references EMPTY, which has no value"],
        ),
        (
            {A: "https://h.example", f"{A}_HEADERS": '{"X":"${T}"}', "T": "canary\r\nX: y"},
            [f"{A}_HEADERS: /X: after its references are expanded it contains a control character"],
        ),
        ({A: "/x", f"{A}_ARGS": '["","${NOPE}"]'}, [f"{A}_ARGS: /1: references NOPE, which has no value"]),
        (
            {A: "/x", f"{A}_ENV": '{"K":"${PLURNK_TOKEN}"}', "PLURNK_TOKEN": "canary"},
            [f"{A}_ENV: /K: references PLURNK_TOKEN, and no PLURNK_ variable can be referenced"],
        ),
        ({A: "/x", f"{A}_CWD": "${X:-y}"}, [f"{A}_CWD: {MALFORMED}"]),
        ({A: "${V}"}, [f"{A}: must not contain ${{: references are not expanded here"]),
        ({A: "ws://canary"}, [f"{A}: is a URL of another scheme than http or https"]),
        (
            {A: "https://u:canary@h"},
            [f"{A}: {USER_INFORMATION}"],
        ),
        (
            {A: " https://h"},
            [f"{A}: must be a URL without blanks, control characters, quotes and backslashes"],
        ),
        (
            {"PLURNK_MCP_Git": "https://a.example/mcp", "PLURNK_MCP_GIT": "https://b.example/mcp"},
            ["PLURNK_MCP_Git: is the same as PLURNK_MCP_GIT, but for case; keep one of them"],
        ),
        (
            {A: "/x", "PLURNK_MCP_A_ARGS": "[]", f"{A}_ARGS": "[]"},
            [f"{A}_ARGS: is the same as PLURNK_MCP_A_ARGS, but for case; keep one of them"],
        ),
        ({"PLURNK_MCP_Http": "/x"}, ["PLURNK_MCP_Http: names no server: 'http' is a reserved name"]),
        ({A: "/x", f"{A}_args": "[]"}, [f"{A}_args: is no companion: companions are in upper case, _ARGS"]),
        (
            {"PLURNK_MCP_my_srv_ARGS": "[]"},
            ["PLURNK_MCP_my_srv_ARGS: names no server: a server name has no '_' (use a hyphen)"],
        ),
        (
            {"PLURNK_MCP_my_srv": "/x"},
            [f"PLURNK_MCP_my_srv: {NEITHER}"],
        ),
        (
            {A: "/x", f"{A}_TOOLS": '["x"]', f"{A}_READ": '["y"]'},
            [f"{A}_READ: /0: is not among the enabled tools of /tools"],
        ),
    ],
)
def test_each_fault_is_one_line_that_names_its_variable(
    environment: dict[str, str], expected: list[str]
) -> None:
    lines = faults(environment)
    assert lines == expected
    assert "canary" not in "".join(lines)


@pytest.mark.spec("defaults")
@pytest.mark.parametrize("name", ["", "1a", "a.b", "\u212a", "a" * 65, "a\nb", "_", "_ARGS", "a b"])
def test_a_variable_that_names_no_server_is_a_fault(name: str) -> None:
    assert len(faults({f"PLURNK_MCP_{name}": "/x"})) == 1


@pytest.mark.spec("defaults")
def test_every_fault_of_every_server_is_told_at_once() -> None:
    lines = faults(
        {
            A: "https://h",
            f"{A}_HEADERS": '{"A":"${NOPE}","a":"x"}',
            f"{A}_BEARER": "literal",
            f"{A}_ENV": "{}",
            "PLURNK_MCP_b": "/x",
            "PLURNK_MCP_b_ARGS": "[",
            "PLURNK_MCP_b_READ": "7",
            "PLURNK_MCP_c_ARGS": "[]",
            "PLURNK_MCP_good": "/x",
        }
        | {"PLURNK_MCP_good_ARGS": '["${NOPE}"]'}
    )
    assert sorted(line.partition(":")[0] for line in lines) == [
        f"{A}_BEARER",
        f"{A}_ENV",
        f"{A}_HEADERS",
        f"{A}_HEADERS",
        "PLURNK_MCP_b_ARGS",
        "PLURNK_MCP_b_READ",
        "PLURNK_MCP_c_ARGS",
        "PLURNK_MCP_good_ARGS",
    ]


@pytest.mark.spec("defaults")
def test_one_faulty_server_does_not_hide_a_good_one() -> None:
    definitions, lines = parse_defaults(
        {A: "/x", "PLURNK_MCP_b": "ftp://h", "PLURNK_MCP_c": "/x", "PLURNK_MCP_c_BEARER": "${T}"}
    )
    assert (list(definitions), len(lines)) == (["a"], 2)


suffixes = st.sampled_from(
    ["", "_ARGS", "_TOOLS", "_READ", "_CWD", "_ENV", "_HEADERS", "_BEARER", "_X", "_args", "_"]
)
servers = st.sampled_from(["a", "A", "b", "file", "a-1", "é", ""])
values = st.text(st.characters(exclude_characters="\0"), max_size=10) | st.sampled_from(
    ["[]", "{}", '["${T}"]', "${T}", "https://h/${T}", "http://h", "/x", '{"A":"b"}', "[[[", "ws://x"]
)


@pytest.mark.spec("defaults")
@given(st.dictionaries(st.tuples(servers, suffixes).map("".join), values, max_size=6))
def test_whatever_the_environment_holds_is_a_definition_or_a_line_without_its_value(
    given_values: dict[str, str],
) -> None:
    marked = {f"PLURNK_MCP_{name}": value for name, value in given_values.items()}
    definitions, lines = parse_defaults(marked | {"T": "t"})
    assert all(any(line.startswith(prefix) for prefix in ("PLURNK_MCP_",)) for line in lines)
    if not lines:
        assert {name.removeprefix("PLURNK_MCP_").partition("_")[0].lower() for name in marked} == set(
            definitions
        )
    for name, definition in definitions.items():
        assert definition.name == name


@pytest.mark.spec("defaults")
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=9))
def test_no_line_quotes_a_value(value: str) -> None:
    canary = f"\x01canary{value}"
    for suffix in ("", "_ARGS", "_TOOLS", "_READ", "_CWD", "_ENV", "_HEADERS", "_BEARER"):
        for text in (canary, json.dumps([canary]), json.dumps({"K": canary}), f"http://u:{canary}@h"):
            base = {A: "/x" if suffix in {"_ARGS", "_CWD", "_ENV"} else "http://h"}
            assert "canary" not in "".join(parse_defaults(base | {f"{A}{suffix}": text})[1])
