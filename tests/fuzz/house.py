"""What clients, operators and disks give: requests, environments, rows, small files. SPEC §agui, §defaults, §state."""

import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError
from sqlalchemy import Connection, StaticPool, create_engine, insert
from sqlalchemy.exc import DBAPIError
from yarl import URL

from app import environment, settings
from app.actions.table import ACTIONS
from app.agui.run_input import parse_run_input
from app.cli import target as command_target
from app.cli.failures import CommandFailure
from app.cli.printable import printable
from app.connections.address_rule import AddressRule
from app.connections.reaper_process import note
from app.core import addresses, trace_context
from app.core.attachments import Attached, Detached
from app.core.callback import CallbackError, read_callback
from app.core.defaults import parse_defaults
from app.core.definitions import HttpDefinition, parse_definition
from app.core.effective import detached, resolve_all
from app.core.masking import Mask
from app.core.names import parse_workspace_name
from app.core.problem import Problem
from app.core.problems import ActionUnknown
from app.core.references import expand_definition, unrestricted
from app.doors.allow_lists import HostAllowList, OriginAllowList
from app.doors.body import parse_json
from app.home import Home, HomeRefused
from app.rest.models import parse_answer
from app.settings import Settings
from app.store import attachments, audit
from app.store.failures import unavailable
from app.store.schema import audit as audit_table
from app.store.schema import metadata, server_attachments
from app.tokens import TokenRefused, Tokens, operator_token
from tests.fuzz.target import CANARY, Target, has_canary_name, json_of, object_of, refused

REDIRECT: Final = "http://127.0.0.1:7777/callback?own=1"
OPERATOR: Final = "operator-token-of-the-fuzzer"
_ALLOWED: Final = Settings.model_validate(
    {
        "allowed_hosts": '["mcp.example.com", "*.example.net"]',
        "allowed_origins": '["https://app.example.com"]',
    }
)
_WORDS: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"null",
        b"true",
        b"1e308",
        b"18446744073709551616",
        b"{}",
        b"[]",
    ),
    *(b'"kind"', b"\\u0000", b"\\ud800", b"\xff", b"${A}", b"${", b"$${", CANARY.encode()),
)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _body(data: bytes) -> None:
    try:
        value = parse_json(data)
        parse_run_input(value)
    except Problem as problem:
        refused(problem)
        orjson.dumps(problem.document())
        return
    parse_run_input(orjson.loads(orjson.dumps(value)))


def _action(data: bytes) -> None:
    members = {name: value for name, value in object_of(data).items() if name != "kind"}
    for action in ACTIONS.values():
        try:
            action.parse(dict[str, Any](members))
        except Problem as problem:
            orjson.dumps(problem.document())
    for judge in (
        lambda: parse_answer("i", json_of(data)),
        lambda: parse_workspace_name(members.get("workspace")),
    ):
        try:
            judge()
        except Problem as problem:
            orjson.dumps(problem.document())
    orjson.dumps(ActionUnknown(_text(data).encode("utf-8", "replace").decode()).document())


def _definition(data: bytes) -> None:
    try:
        definition = parse_definition(json_of(data))
        expand_definition(definition, {"A": "x", "B": CANARY + "\r\n"}, unrestricted)
        if isinstance(definition, HttpDefinition):
            _host(definition.url)
    except Problem as problem:
        refused(problem, data)
        orjson.dumps(problem.document())


def _host(url: str) -> None:
    """Read the URL as the connector does."""
    try:
        host = URL(url).raw_host
    except ValueError:
        return
    AddressRule("public").allows_host(host or "")


def _environment(data: bytes) -> None:
    values, faults = environment._parse(data.decode("utf-8", "replace"))
    lines = [*faults, *parse_defaults(values)[1]]
    try:
        Settings.from_environment(values)
    except ValidationError as error:
        lines += settings.faults(error)
    for line in lines:
        assert line.isprintable(), "a fault is not one line"
        assert CANARY not in line.partition(": ")[2] or has_canary_name(data), "a fault quotes a value"


def _server_variables(data: bytes) -> None:
    """Read NUL-separated pairs, as the process's environment has them: names of any characters."""
    pairs = [each.partition("=") for each in _text(data).split("\0")]
    values = {f"PLURNK_MCP_{name}": value for name, equals, value in pairs if equals}
    definitions, faults = parse_defaults(values)
    assert (
        definitions
        or faults
        or not values.keys() - {"PLURNK_MCP_CONNECT_TIMEOUT", "PLURNK_MCP_REQUEST_TIMEOUT"}
    )
    for line in faults:
        assert line.isprintable()
        assert CANARY not in line.partition(": ")[2] or has_canary_name(data), "a fault quotes a value"


def _callback(data: bytes) -> None:
    try:
        read_callback(_text(data), REDIRECT)
    except CallbackError as error:
        refused(error)


def _address(data: bytes) -> None:
    try:
        found = addresses.parse(_text(data))
    except Problem as problem:
        refused(problem)
    else:
        assert addresses.parse(addresses.printed(found)) == found


def _headers(data: bytes) -> None:
    """Read one header value as Host, Origin, Authorization and the trace's."""
    value = data.decode("latin-1")
    hosts, origins = HostAllowList(_ALLOWED), OriginAllowList(_ALLOWED.allowed_origins)
    if hosts.admits(value):
        name = value.rpartition(":")[0] if value.rpartition(":")[2].isdigit() else value
        assert name.strip("[]").lower().replace("0", "").replace(":", "") in {
            "",
            "1",
            "mcp.example.com",
            "localhost",
        } or (name.lower().endswith(".example.net") or name.startswith(("127.", "[::"))), value
    if origins.admits(value):
        assert value.lower().removesuffix(":443") == "https://app.example.com"
    if (principal := Tokens(OPERATOR).principal(value)) is not None:
        assert principal.workspace is None
        assert OPERATOR in value
    context = trace_context.parse([value], [value])
    assert context is None or len(context.traceparent) == 55


def _masked(data: bytes) -> None:
    shown = Mask([CANARY]).mask(_text(data))
    assert CANARY not in shown
    assert printable(shown).replace("\n", "").replace("\t", "").isprintable() or shown


def _database() -> Connection:
    opened = create_engine("sqlite://", poolclass=StaticPool).connect()
    metadata.create_all(opened)
    return opened


_DATABASE: Final = _database()


def _rows(data: bytes) -> None:
    """Put five fields as a foreign hand could, past our own writers, and read them as the daemon does."""
    fields: list[Any] = [json_of(each) if each[:1] != b"!" else each[1:] for each in data.split(b"\x1f")]
    given = [
        each if isinstance(each, int | float | str | bytes) or each is None else str(each) for each in fields
    ]
    one, two, three, four, five, *_ = [*given, *[None] * 5]
    with _DATABASE.begin_nested() as rolled_back:
        for statement, values in (
            (insert(server_attachments), {"workspace": one, "name": two, "state": three, "definition": four, "updated_at": five}),
            (insert(audit_table), {"at": five, "actor": "operator", "workspace": one, "kind": two, "server": three, "outcome": four}),
        ):  # fmt: skip
            try:
                _DATABASE.exec_driver_sql("SAVEPOINT one")
                _DATABASE.execute(statement, values)
            except (DBAPIError, OverflowError, UnicodeEncodeError, sqlite3.Error):
                _DATABASE.exec_driver_sql("ROLLBACK TO one")
        try:
            _read_rows()
        finally:
            rolled_back.rollback()


def _read_rows() -> None:
    try:
        with unavailable():
            driver = _DATABASE.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            rows = audit.rows(driver, limit=9, workspace=None)
            records = {name: attachments.load(driver, name) for name in attachments.workspaces(driver)}
    except Problem as problem:
        refused(problem)
        return
    orjson.dumps([[each.workspace, each.kind, each.server, each.outcome, each.at] for each in rows])
    for mapping in records.values():
        detached(mapping)
        for server in resolve_all({}, mapping).values():
            if server.problem is not None:
                refused(server.problem)


def _stored_definition(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for server in resolve_all({}, {"s": Attached(text), "t": Detached()}).values():
        if server.problem is not None:
            refused(server.problem, data)
            orjson.dumps(server.problem.document())


_DIRECTORY: Final = tempfile.TemporaryDirectory()


def _files(data: bytes) -> None:
    """Read ``daemon.json``, ``token`` and the record of children, each with these bytes, as both sides do."""
    home = Home(Path(_DIRECTORY.name))
    options = command_target.TargetOptions(home=home.path)
    for file in (home.daemon, home.token):
        file.write_bytes(data)
    home.running()
    environments: tuple[Mapping[str, str], ...] = ({}, {"PLURNK_TOKEN": data.decode("utf-8", "replace")})
    given = (
        options,
        replace(options, url="http://x"),
        replace(options, url="http://x", token_file=home.token),
    )
    for each, chosen in product(environments, given):
        try:
            command_target.find(chosen, each)
        except CommandFailure as failure:
            refused(failure)
    try:
        operator_token(None, home)
    except (TokenRefused, HomeRefused) as refusal:
        refused(refusal)
    groups: dict[int, str | None] = {}
    for line in data.decode("ascii", "replace").split("\n"):
        note(groups, line)
    assert all(1 < group < 2**31 for group in groups), "a group that no system call takes"


_ATTACH: Final = (
    b'{"name": "s", "transport": "stdio", "command": "/c", "args": ["${A}"], "env": {"K": "$${x}"}, "cwd": "/", "tools": ["t"], "read": ["t"]}',
    b'{"name": "s", "transport": "http", "url": "https://a.example/m", "headers": {"X-K": "${B}"}, "authorization": {"type": "bearer", "token": "${A}"}}',
    b'{"name": "s", "transport": "http", "url": "https://a.example/m", "authorization": {"type": "oauth", "redirectUrl": "http://localhost/c", "clientId": "canary-5e7d1c-secret", "clientSecret": "${A}", "scope": "a b", "issuer": "https://i.example"}}',
)
_AT: Final = b'"2026-01-01T00:00:00.000000Z"'

TARGETS: Final = (
    Target(
        "run-input",
        _body,
        (
            b'{"threadId": "t", "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {"plurnk": {"workspace": "w", "action": {"kind": "workspace.mcp.list"}}}, "resume": [{"interruptId": "i", "status": "resolved", "payload": {}}]}',
            b'{"threadId": "t", "runId": "r", "tools": [{"name": "n", "description": "d", "parameters": {}}]}',
        ),
        _WORDS[:-1],
    ),
    Target(
        "action",
        _action,
        (
            b'{"server": "s", "tool": "t", "arguments": {}}',
            b'{"server": "s", "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "n", "value": ""}, "context": {"arguments": {}}}',
            b'{"status": "resolved", "payload": 1, "metadata": {"plurnk": {}}, "workspace": "w", "uri": "s:///", "operation": "o", "seconds": 1.5}',
        ),
        _WORDS[:-1],
        steps_fixed=20_000,
    ),
    Target("definition", _definition, _ATTACH, _WORDS, steps_fixed=20_000, steps_per_byte=300),
    Target("stored-definition", _stored_definition, _ATTACH, _WORDS, steps_fixed=20_000, steps_per_byte=300),
    Target(
        "env-file",
        _environment,
        (
            b"# c\nexport PLURNK_MCP_A='https://a.example'\nPLURNK_MCP_A_HEADERS={\"X\": \"${Y}\"}\nPLURNK_PORT=99999\nY=1\n",
            b"PLURNK_MCP_B=/bin/x\nPLURNK_MCP_B_ARGS=[\"a\"]\nPLURNK_REFERENCES=[\"canary-5e7d1c-secret\"]\nPLURNK_HTTP_HOSTS=[\"10.0.0.0/8\"]\n",
        ),
        (*_WORDS, b"PLURNK_MCP_", b"PLURNK_", b"=", b"\n", b"'", b"export ", b"#", b"_ENV=", b"_BEARER=", b"\\x", b"PLURNK_HTTP_PROXY="),
        steps_fixed=20_000,
        steps_per_byte=300,
    ),
    Target(
        "env-servers",
        _server_variables,
        (b'A=https://a\0A_HEADERS={"X": "1"}\0A_BEARER=canary-5e7d1c-secret', b'B=/b\0B_ARGS=["x"]\0B_ENV={"K": "${V}"}\0b=/c\0C_READ=[]'),
        (*_WORDS, b"\0", b"=", b"_ARGS=", b"_TOOLS=", b"_READ=", b"_CWD=", b"CONNECT_TIMEOUT=", b"\xe2\x84\xaa", b"\n", b"\x1b["),
        steps_fixed=20_000,
        steps_per_byte=400,
    ),
    Target(
        "callback",
        _callback,
        (b"http://127.0.0.1:7777/callback?own=1&state=s&code=c&iss=https%3A%2F%2Fi", b" HTTP://127.0.0.1:7777/callback?own=1&state=s&error=e"),
        (b"&", b"=", b"?", b"#", b"%", b"%00", b"state=", b"code=", b"own=1", b"@", b"[", b"]", b"\xe2\x84\xaa", b";", CANARY.encode()),
    ),
    Target(
        "address",
        _address,
        (b"s:///resources/file%3A%2F%2F%2Fa", b"s:///prompts/p%20q?a=b&c=", b"worker://plurnk/docs/s.md", b"s:///prompts"),
        (b"%", b"%2", b"%25", b"%00", b"%ff", b"?", b"#", b"&", b"=", b":///", b"/resources/", b"\xed\xa0\x80", CANARY.encode()),
    ),
    Target(
        "headers",
        _headers,
        (
            b"localhost:3044", b"[::1]:1", b"mcp.example.com", b"a.example.net:9", b"https://app.example.com", b"Bearer operator-token-of-the-fuzzer",
            b"Bearer plurnk.w.AAAA", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", b"a=1,b@c=2",
        ),
        (b"Bearer ", b"plurnk.", b"operator-token-of-the-fuzzer", b":", b"@", b".", b"127.0.0.1", b"null", b"*", b"://", b"-", b"\xff", b" ", b"\t"),
    ),
    Target(
        "mask",
        _masked,
        (b"x canary-5e7d1c-secret %63anary-5e7d1c-secret \\u0063anary-5e7d1c-secret", b"a2FuYXJ5LTVlN2QxYy1zZWNyZXQ="),
        (b"%", b"%25", b"\\", b"\\u00", b"canary-", b"5e7d1c", b"-secret", b"\xff", b"\x1b[0m"),
        steps_per_byte=600,
    ),
    Target(
        "database-row",
        _rows,
        (
            b'"w"\x1f"s"\x1f"attached"\x1f"{}"\x1f' + _AT, b'"w"\x1f"s"\x1f"detached"\x1fnull\x1f' + _AT,
            b'"w"\x1f"s"\x1f"attached"\x1f"x"\x1f"2026-99-99T99:99:99.999999Z"', b'"w"\x1f!k\x1f!\xff\x1f!o\x1f' + _AT,
        ),
        (b"\x1f", b"!", b'"', b"\xff", b"null", b"1", _AT, b"\\u0000"),
        steps_fixed=20_000,
    ),
    Target(
        "small-file",
        _files,
        (b'{"address": "http://127.0.0.1:3044", "pid": 12}\n', b"operator-token\n", b"+ 123 456\n- 123\n+ 7 x", CANARY.encode() + b" "),
        (*_WORDS[:-1], b"+ ", b"- ", b"\n", b"9" * 12, b"\xff"),
        steps_fixed=6_000,
    ),
)  # fmt: skip
