"""The closed union of server definitions. SPEC §definition."""

import copy
from typing import Any

import jsonschema
import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.definitions import (
    FAULTS_MAX,
    SCHEMA,
    Bearer,
    ClientCredentials,
    HttpDefinition,
    OAuthDynamic,
    OAuthMetadataDocument,
    OAuthPreRegistered,
    StdioDefinition,
    parse_definition,
)
from app.core.problems import DefinitionInvalid

VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
STDIO: dict[str, Any] = {"name": "p", "transport": "stdio", "command": "/My App/srv"}
HTTP: dict[str, Any] = {"name": "p", "transport": "http", "url": "https://h.example/mcp"}
REDIRECT = "http://127.0.0.1:7777/cb"

unicode = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
plain = st.text(unicode, max_size=8).filter(lambda text: "${" not in text)
referring = st.lists(
    plain.filter(lambda text: not text.endswith("$")) | st.sampled_from(["${A}", "$${", "x"])
).map("".join)
referring = referring.filter(lambda text: "$$${" not in text)
tools = st.lists(plain, unique=True, max_size=4)
token = st.from_regex(r"\$\{[A-Za-z_][A-Za-z0-9_]{0,5}\}", fullmatch=True)
client_ids = st.sampled_from(["c", "a b", "https://x"])
authorizations = st.one_of(
    st.fixed_dictionaries({"type": st.just("bearer"), "token": token}),
    st.fixed_dictionaries(
        {"type": st.just("oauth"), "redirectUrl": st.just(REDIRECT)}, optional={"scope": st.just("a b")}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("oauth"),
            "redirectUrl": st.just(REDIRECT),
            "clientMetadataUrl": st.just("https://h/c.json"),
        },
        optional={"scope": st.just("a")},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("oauth"),
            "redirectUrl": st.just(REDIRECT),
            "clientId": client_ids,
            "clientSecret": token,
        },
        optional={"scope": st.just("a"), "issuer": st.just("https://as.example")},
    ),
    st.fixed_dictionaries(
        {"type": st.just("client-credentials"), "clientId": client_ids, "clientSecret": token},
        optional={"scope": st.just("a"), "issuer": st.just("https://as.example/x")},
    ),
)
server_names = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True).filter(
    lambda name: name not in {"worker", "plurnk", "http", "https", "file", "stdio"}
)
environment_names = plain.filter(lambda name: bool(name) and "=" not in name)
stdio_documents = st.fixed_dictionaries(
    {"name": server_names, "transport": st.just("stdio"), "command": plain.filter(bool)},
    optional={
        "args": st.lists(referring, max_size=3),
        "cwd": referring.filter(bool),
        "env": st.dictionaries(environment_names, referring, max_size=3),
        "tools": tools,
    },
)
http_documents = st.fixed_dictionaries(
    {
        "name": server_names,
        "transport": st.just("http"),
        "url": st.sampled_from(["http://h", "https://[::1]:8/mcp?x=1"]),
    },
    optional={
        "headers": st.dictionaries(
            st.sampled_from(["X-A", "X-B", "Cookie"]), st.sampled_from(["", "a ${A} ü", "$${"])
        ),
        "authorization": authorizations,
        "tools": tools,
    },
)
good_documents = stdio_documents | http_documents

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.just(float("nan"))
    | st.text(max_size=5)
    | st.sampled_from(
        [
            "${A}",
            "${A",
            "$${A}",
            "http://u@h",
            "https://h/p",
            "a\r\nb",
            "\0",
            "stdio",
            "http",
            "oauth",
            "bearer",
            "worker",
        ]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
member_names = st.sampled_from(
    [
        *STDIO,
        *HTTP,
        "args",
        "cwd",
        "env",
        "tools",
        "read",
        "headers",
        "authorization",
        "type",
        "token",
        "redirectUrl",
        "clientId",
        "clientSecret",
        "clientMetadataUrl",
        "issuer",
        "scope",
        "Authorization",
        "x-a",
        "Tools",
        "",
        "${A}",
        "A=B",
    ]
)


def errors(value: object) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_definition(value)
    return list(caught.value.errors)


def pointers(value: object) -> list[str]:
    return [pointer for pointer, _ in errors(value)]


@pytest.mark.spec("definition")
@given(good_documents, st.data())
def test_a_good_definition_parses_validates_and_is_what_was_sent(
    document: dict[str, Any], data: st.DataObject
) -> None:
    if document.get("tools"):
        document["read"] = data.draw(st.lists(st.sampled_from(document["tools"]), unique=True))
    parsed = parse_definition(copy.deepcopy(document))
    assert orjson.loads(parsed.model_dump_json(by_alias=True, exclude_unset=True)) == document
    assert VALIDATOR.is_valid(document)


@pytest.mark.spec("definition")
@given(
    good_documents,
    st.lists(
        st.tuples(member_names, json_values, st.sampled_from(["top", "env", "headers", "authorization"]))
    ),
)
def test_parser_and_schema_agree_on_what_a_schema_can_say(
    document: dict[str, Any], changes: list[tuple[str, Any, str]]
) -> None:
    for name, value, place in changes:
        target = document if place == "top" else document.get(place)
        if isinstance(target, dict):
            target[name] = value
    try:
        parse_definition(document)
    except DefinitionInvalid as invalid:
        said_by_the_parser_alone = all(
            message.startswith(("is not among", "is the same header"))
            or pointer.endswith(("url", "Url", "issuer"))
            for pointer, message in invalid.errors
        )
        assert said_by_the_parser_alone or not VALIDATOR.is_valid(document)
    else:
        assert VALIDATOR.is_valid(document)


@pytest.mark.spec("definition")
@given(json_values)
def test_whatever_is_sent_is_parsed_or_refused_and_nothing_else(value: object) -> None:
    try:
        parsed = parse_definition(value)
    except DefinitionInvalid as invalid:
        orjson.dumps(invalid.document())
    else:
        assert isinstance(parsed, StdioDefinition | HttpDefinition)


@pytest.mark.spec("definition")
def test_the_schema_is_a_json_schema_and_json() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert orjson.loads(orjson.dumps(SCHEMA)) == SCHEMA


@pytest.mark.spec("definition")
@pytest.mark.parametrize("header", ["Authorization", "aUTHORIZATION"])
def test_the_schema_too_refuses_an_authorization_header_beside_authorization(header: str) -> None:
    with_header = {**HTTP, "headers": {header: "${T}"}}
    assert VALIDATOR.is_valid(with_header)
    assert not VALIDATOR.is_valid({**with_header, "authorization": {"type": "bearer", "token": "${T}"}})


@pytest.mark.spec("definition")
def test_a_definition_without_tools_enables_all_and_one_with_none_enables_none() -> None:
    assert parse_definition(STDIO).tools is None
    assert parse_definition({**STDIO, "tools": []}).tools == ()
    assert parse_definition({**HTTP, "tools": ["a"], "read": ["a"]}).read == ("a",)
    assert parse_definition({**HTTP, "read": ["a"]}).read == ("a",)


@pytest.mark.spec("definition")
def test_arguments_are_kept_to_the_letter() -> None:
    args = ["-d", "/data/My Docs", '"q"', "*", "", "a\\ b"]
    parsed = parse_definition({**STDIO, "args": args})
    assert isinstance(parsed, StdioDefinition)
    assert (parsed.command, parsed.args) == ("/My App/srv", tuple(args))


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "authorization, arm",
    [
        ({"type": "bearer", "token": "${T}"}, Bearer),
        ({"type": "oauth", "redirectUrl": REDIRECT}, OAuthDynamic),
        (
            {"type": "oauth", "redirectUrl": REDIRECT, "clientMetadataUrl": "https://h/c", "scope": "s"},
            OAuthMetadataDocument,
        ),
        (
            {"type": "oauth", "redirectUrl": REDIRECT, "clientId": "c", "clientSecret": "${S}"},
            OAuthPreRegistered,
        ),
        ({"type": "client-credentials", "clientId": "c", "clientSecret": "${S}"}, ClientCredentials),
    ],
)
def test_every_way_to_authorize_has_its_own_arm(authorization: dict[str, Any], arm: type) -> None:
    parsed = parse_definition({**HTTP, "authorization": authorization})
    assert isinstance(parsed, HttpDefinition)
    assert parsed.authorization is not None
    assert type(parsed.authorization) is arm
    assert parsed.authorization.model_dump(by_alias=True, exclude_unset=True) == authorization


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "name", ["allowed_tools", "Tools", "tool", "enabledTools", "url", "headers", "type", "a/b"]
)
def test_an_unknown_member_is_refused_by_name(name: str) -> None:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_definition({**STDIO, name: ["a"]})
    pointer = "/" + name.replace("/", "~1")
    assert caught.value.facts == {
        "server": "p",
        "errors": [{"pointer": pointer, "message": "is not a member of a stdio definition"}],
    }
    assert pointer in caught.value.detail


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "value, expected",
    [
        (None, [""]),
        ("x", [""]),
        ([STDIO], [""]),
        ({}, ["/transport", "/name", "/command"]),
        ({"url": "http://h", "name": "P"}, ["/transport", "/name"]),
        ({**STDIO, "transport": "sse"}, ["/transport"]),
        (
            {**STDIO, "name": "P", "command": 1, "args": [True, 1.5], "env": {"A": 1}},
            ["/name", "/command", "/args/0", "/args/1", "/env/A"],
        ),
        (
            {**STDIO, "tools": None, "read": None, "cwd": None, "env": None, "args": None},
            ["/args", "/cwd", "/env", "/tools", "/read"],
        ),
        ({**STDIO, "tools": ["a", "b", "a"], "read": ["c", "a", "a"]}, ["/tools/2", "/read/2", "/read/0"]),
        ({**STDIO, "tools": [], "read": ["a"]}, ["/read/0"]),
        ({**STDIO, "command": "${V}"}, ["/command"]),
        ({**STDIO, "command": "$${V}"}, ["/command"]),
        ({**STDIO, "env": {"${V}": "1", "": "1", "A=B": "1"}}, ["/env/${V}", "/env/", "/env/A=B"]),
        (
            {**STDIO, "args": ["${X:-y}", "${", "\0", "\ud800"], "cwd": "\0"},
            ["/args/0", "/args/1", "/args/2", "/args/3", "/cwd"],
        ),
        ({**HTTP, "headers": {"X-A": "b\r\nX-Evil: 1"}}, ["/headers/X-A"]),
        ({**HTTP, "headers": {"X-B\r\nX-Evil": "1"}}, ["/headers/X-B\ufffd\ufffdX-Evil"]),
        ({**HTTP, "headers": {"X-A": "1", "x-a": "2"}}, ["/headers/x-a"]),
        (
            {**HTTP, "headers": {"aUTHORIZATION": "x"}, "authorization": {"type": "bearer", "token": "${T}"}},
            ["/headers/aUTHORIZATION"],
        ),
        (
            {**HTTP, "headers": {"authorization": "x"}, "authorization": None},
            ["/authorization", "/headers/authorization"],
        ),
        ({**HTTP, "authorization": {}}, ["/authorization/type", "/authorization/token"]),
        (
            {**HTTP, "authorization": {"type": "basic", "clientId": "c", "clientSecret": "${S}"}},
            ["/authorization/type"],
        ),
        ({**HTTP, "authorization": {"type": "oauth"}}, ["/authorization/redirectUrl"]),
        (
            {**HTTP, "authorization": {"type": "oauth", "redirectUrl": REDIRECT, "clientSecret": "${S}"}},
            ["/authorization/clientId"],
        ),
        (
            {
                **HTTP,
                "authorization": {
                    "type": "oauth",
                    "redirectUrl": REDIRECT,
                    "clientId": "c",
                    "clientSecret": "lit",
                },
            },
            ["/authorization/clientSecret"],
        ),
        (
            {**HTTP, "authorization": {"type": "oauth", "redirectUrl": REDIRECT, "issuer": "https://i"}},
            ["/authorization/clientId", "/authorization/clientSecret"],
        ),
    ],
)
def test_every_fault_is_told_at_once_by_pointer(value: object, expected: list[str]) -> None:
    assert pointers(value) == expected


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "token", ["abc", "Bearer ${T}", "${A}${B}", " ${T}", "${T}\n", "${t-x}", "", 7, None]
)
def test_a_bearer_token_is_one_reference_and_never_quoted(token: object) -> None:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_definition({**HTTP, "authorization": {"type": "bearer", "token": token}})
    assert [pointer for pointer, _ in caught.value.errors] == ["/authorization/token"]
    assert "abc" not in caught.value.detail + str(caught.value.facts)


@pytest.mark.spec("definition")
@given(
    good_documents,
    st.sampled_from(["url", "command", "name", "cwd", "tools", "args", "transport", "headers", "env"]),
)
def test_no_fault_quotes_a_value(document: dict[str, Any], member: str) -> None:
    canary = "http://u:canary-value@h/\0${canary-value}"
    document[member] = canary if member not in {"tools", "args"} else [canary]
    with pytest.raises(DefinitionInvalid) as caught:
        parse_definition(document)
    assert "canary" not in caught.value.detail + str(caught.value.facts)


@pytest.mark.spec("definition")
def test_a_hostile_definition_is_refused_without_looking_into_its_depths() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert pointers({**STDIO, "args": deep, "env": {"A": deep}, "x": deep}) == ["/args/0", "/env/A", "/x"]
    huge = {**STDIO, **{f"member-{index}": index for index in range(50_000)}}
    found = errors(huge)
    assert len(found) == FAULTS_MAX + 1
    assert found[-1] == ("", f"has {50_000 - FAULTS_MAX} more faults")
    assert pointers({**STDIO, "k" * 1_000_000: 1}) == [f"/{'k' * 128}…"]
    while deep:
        deep = deep.pop()
