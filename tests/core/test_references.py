"""Expanding references against a mapping. SPEC §references."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.definitions import parse_definition
from app.core.problem import Problem
from app.core.problems import DefinitionInvalid, ReferenceMissing, ReferenceRefused
from app.core.reference_syntax import escape
from app.core.references import (
    HttpExpanded,
    StdioExpanded,
    expand,
    expand_definition,
    reference_fields,
    unrestricted,
)

STDIO = {"name": "p", "transport": "stdio", "command": "/srv"}
HTTP = {"name": "p", "transport": "http", "url": "http://h/mcp"}
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def refused(document: Mapping[str, object], environment: Mapping[str, str]) -> Problem:
    with pytest.raises(Problem) as caught:
        expand_definition(parse_definition(dict(document)), environment, unrestricted)
    return caught.value


@pytest.mark.spec("references")
@given(st.text())
def test_an_escaped_text_expands_to_itself(text: str) -> None:
    assert expand(escape(text), {}) == text


@pytest.mark.spec("references")
@given(st.lists(st.tuples(st.text(), names, st.text())))
def test_references_expand_in_place_and_values_are_not_expanded_again(
    parts: list[tuple[str, str, str]],
) -> None:
    values = {name: value + "${A}$${" for _, name, value in parts}
    text = "".join(f"{escape(before).rstrip('$')}${{{name}}}" for before, name, _ in parts)
    expected = "".join(before_shown + values[name] for before_shown, name in shown(parts))
    assert expand(text, values) == expected


def shown(parts: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(expand(escape(before).rstrip("$"), {}), name) for before, name, _ in parts]


@pytest.mark.spec("references")
def test_a_stdio_definition_expands_in_args_cwd_and_env_values_only() -> None:
    definition = parse_definition(
        {
            **STDIO,
            "args": ["--k=${V}", "${V}${V}", "$${V}", ""],
            "cwd": "${D}",
            "env": {"A": "x${V}y", "B": "$"},
        }
    )
    expanded = expand_definition(definition, {"V": "val", "D": "/data", "OTHER": "unused"}, unrestricted)
    assert expanded == StdioExpanded(
        command="/srv",
        args=("--k=val", "valval", "${V}", ""),
        cwd="/data",
        env={"A": "xvaly", "B": "$"},
        secrets=frozenset({"val", "/data"}),
    )


@pytest.mark.spec("references")
def test_an_http_definition_expands_in_header_values_and_credentials() -> None:
    bearer = parse_definition(
        {**HTTP, "headers": {"X-K": "a ${T} b"}, "authorization": {"type": "bearer", "token": "${T}"}}
    )
    client = parse_definition(
        {**HTTP, "authorization": {"type": "client-credentials", "clientId": "c", "clientSecret": "${S}"}}
    )
    environment = {"T": "secret-token", "S": "secret-client"}
    assert expand_definition(bearer, environment, unrestricted) == HttpExpanded(
        url="http://h/mcp",
        headers={"X-K": "a secret-token b"},
        bearer="secret-token",
        client_secret=None,
        secrets=frozenset({"secret-token"}),
    )
    assert expand_definition(client, environment, unrestricted) == HttpExpanded(
        url="http://h/mcp",
        headers={},
        bearer=None,
        client_secret="secret-client",
        secrets=frozenset({"secret-client"}),
    )


@pytest.mark.spec("references")
def test_an_expansion_never_shows_itself() -> None:
    definitions = (
        parse_definition({**STDIO, "args": ["${T}"]}),
        parse_definition({**HTTP, "headers": {"A": "${T}"}}),
    )
    for definition in definitions:
        assert "canary" not in repr(expand_definition(definition, {"T": "canary-t"}, unrestricted))


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "document, field",
    [
        ({**HTTP, "headers": {"X-K": "a ${NOPE_1} b"}}, "/headers/X-K"),
        ({**STDIO, "env": {"K/~": "${NOPE_1}"}}, "/env/K~1~0"),
        ({**STDIO, "args": ["", "${NOPE_1}"]}, "/args/1"),
        ({**STDIO, "cwd": "${NOPE_1}"}, "/cwd"),
        ({**HTTP, "authorization": {"type": "bearer", "token": "${NOPE_1}"}}, "/authorization/token"),
        (
            {
                **HTTP,
                "authorization": {"type": "client-credentials", "clientId": "c", "clientSecret": "${NOPE_1}"},
            },
            "/authorization/clientSecret",
        ),
    ],
    ids=["header", "env", "arg", "cwd", "bearer", "client secret"],
)
def test_a_missing_name_names_server_variable_and_field(document: Mapping[str, object], field: str) -> None:
    problem = refused(document, {"V": "x"})
    assert isinstance(problem, ReferenceMissing)
    assert problem.facts == {"server": "p", "variable": "NOPE_1", "field": field}


@pytest.mark.spec("references")
def test_an_empty_value_is_missing_in_a_credential_and_empty_elsewhere() -> None:
    bearer = {**HTTP, "authorization": {"type": "bearer", "token": "${EMPTY}"}}
    assert isinstance(refused(bearer, {"EMPTY": ""}), ReferenceMissing)
    expanded = expand_definition(
        parse_definition({**STDIO, "env": {"A": "${EMPTY}"}, "args": ["${EMPTY}"]}),
        {"EMPTY": ""},
        unrestricted,
    )
    assert isinstance(expanded, StdioExpanded)
    assert (expanded.env, expanded.args, expanded.secrets) == ({"A": ""}, ("",), frozenset())


@pytest.mark.spec("references")
def test_the_daemons_own_variables_are_refused_whoever_allows_them() -> None:
    problem = refused({**STDIO, "args": ["${PLURNK_TOKEN}"]}, {"PLURNK_TOKEN": "canary-token"})
    assert isinstance(problem, ReferenceRefused)
    assert problem.facts == {"server": "p", "variable": "PLURNK_TOKEN", "field": "/args/0"}


@pytest.mark.spec("references")
def test_a_name_that_may_not_be_referenced_is_refused_whether_or_not_it_is_set() -> None:
    definition = parse_definition({**STDIO, "args": ["${ALLOWED}", "${OTHER}"]})
    for environment in ({"ALLOWED": "1", "OTHER": "2"}, {"ALLOWED": "1"}):
        with pytest.raises(ReferenceRefused) as caught:
            expand_definition(definition, environment, lambda name: name == "ALLOWED")
        assert caught.value.facts["variable"] == "OTHER"


@pytest.mark.spec("references")
@pytest.mark.parametrize("value", ["good\r\nX-Evil: 1", "good\n", "a\0b", "a\tb", "\x7f", "\x85", "a\udcffb"])
@pytest.mark.parametrize(
    "document",
    [
        {**HTTP, "authorization": {"type": "bearer", "token": "${T}"}},
        {**HTTP, "headers": {"X-A": "b${T}"}},
        {**HTTP, "authorization": {"type": "client-credentials", "clientId": "c", "clientSecret": "${T}"}},
    ],
    ids=["bearer", "header", "client secret"],
)
def test_an_expanded_value_that_could_split_a_request_is_refused_unseen(
    document: Mapping[str, object], value: str
) -> None:
    problem = refused(document, {"T": value})
    assert isinstance(problem, DefinitionInvalid)
    assert len(problem.errors) == 1
    assert "good" not in problem.detail + str(problem.facts)


@pytest.mark.spec("references")
@pytest.mark.parametrize(
    "document, value, pointer",
    [
        ({**STDIO, "args": ["${T}"]}, "a\0b", "/args/0"),
        ({**STDIO, "env": {"K": "${T}"}}, "a\0b", "/env/K"),
        ({**STDIO, "cwd": "${T}"}, "a\0b", "/cwd"),
        ({**STDIO, "cwd": "${T}"}, "", "/cwd"),
    ],
)
def test_an_expanded_value_that_no_process_can_be_given_is_refused(
    document: Mapping[str, object], value: str, pointer: str
) -> None:
    problem = refused(document, {"T": value})
    assert isinstance(problem, DefinitionInvalid)
    assert [found for found, _ in problem.errors] == [pointer]


@pytest.mark.spec("references")
def test_long_names_that_look_alike_when_shown_keep_their_own_values() -> None:
    long = "K" * 200
    definition = parse_definition({**STDIO, "env": {f"{long}1": "${A}", f"{long}2": "${B}"}})
    expanded = expand_definition(definition, {"A": "first", "B": "second"}, unrestricted)
    assert isinstance(expanded, StdioExpanded)
    assert expanded.env == {f"{long}1": "first", f"{long}2": "second"}


@pytest.mark.spec("references")
def test_definitions_without_references_have_no_secrets() -> None:
    oauth = parse_definition(
        {**HTTP, "authorization": {"type": "oauth", "redirectUrl": "http://localhost/cb"}}
    )
    assert list(reference_fields(oauth)) == []
    assert expand_definition(oauth, {}, unrestricted).secrets == frozenset()
