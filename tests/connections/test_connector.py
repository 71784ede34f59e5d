"""connector.py: from a definition to a READY connection, or to the one right Problem and nothing left."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from app.connections.connector import Connector
from app.connections.recovery import Backoff
from app.core.answers import AnswerLost, Progress, RequestNotSent, Result
from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition, parse_definition
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.core.problem import Problem
from app.ports import Connection, Source, Target
from app.ports import Connector as ConnectorPort
from app.settings import Settings
from tests.support.peers.programs import (
    FASTMCP_SERVER,
    SDK_SERVER,
    http_definition,
    http_peer,
    scripted_definition,
    stdio_definition,
)
from tests.support.scripted_http import Reply, Script, error, result, scripted_http, stream

DISCOVERED = result({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})


class House:
    """A connector and the group its connections live in."""

    def __init__(self, connector: Connector, group: TaskGroup, mask: Mask) -> None:
        self.connector = connector
        self.group = group
        self.mask = mask
        self.changes: list[ConnectionState] = []
        self._news = anyio.Event()

    async def open(
        self, definition: dict[str, Any], *, source: Source = "workspace", is_explicit: bool = True
    ) -> Connection:
        target = Target("w", parsed(definition), source, is_explicit)
        return await self.connector.open(target, self.group, self._note)

    def _note(self, connection: Connection) -> None:
        self.changes.append(connection.state)
        self._news.set()

    async def has_changed(self, count: int) -> None:
        """Return once so many changes were told."""
        while len(self.changes) < count:
            self._news = anyio.Event()
            await self._news.wait()

    async def refused(self, definition: dict[str, Any], *, source: Source = "workspace") -> Problem:
        with pytest.raises(Problem) as raised:
            await self.open(definition, source=source)
        return raised.value


def parsed(definition: dict[str, Any]) -> StdioDefinition | HttpDefinition:
    return parse_definition(definition)


@asynccontextmanager
async def house(environment: dict[str, str] | None = None, **settings: Any) -> AsyncGenerator[House]:
    mask = Mask()
    backoff = Backoff(first=0.01, ceiling=0.01)
    connector = Connector(Settings.model_validate(settings), environment or {}, mask, backoff=backoff)
    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                yield House(connector, group, mask)
                group.cancel_scope.cancel()
    finally:
        await connector.close()


def fits(_kind: type[ConnectorPort]) -> None:
    """Be judged by the type checker."""


def test_the_roots_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[ssl.SSLContext] = []
    create = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: read.append(create()) or read[-1])
    Connector(Settings(), {}, Mask())
    assert len(read) == 1


def test_it_is_the_port() -> None:
    fits(Connector)


@pytest.mark.spec("connection")
@pytest.mark.parametrize("program", [SDK_SERVER, FASTMCP_SERVER], ids=["sdk", "fastmcp"])
async def test_a_real_http_server_serves_calls_with_progress_reads_and_prompts(program: Path) -> None:
    with http_peer(program) as url:
        async with house({"T": "tok-A"}) as home:
            definition = http_definition("p", url, authorization={"type": "bearer", "token": "${T}"})
            connection = await home.open(definition)
            assert connection.state is ConnectionState.READY
            assert (connection.server, connection.problem) == ("p", None)
            progress: list[Progress] = []
            answer = await connection.request(
                "tools/call", {"name": "count", "arguments": {"steps": 3}}, on_progress=progress.append
            )
            assert isinstance(answer, Result)
            assert [each.progress for each in progress] == [1.0, 2.0, 3.0]
            answer = await connection.request(
                "tools/call", {"name": "header", "arguments": {"name": "authorization"}}
            )
            assert "Bearer tok-A" in str(answer)
            answer = await connection.request("resources/read", {"uri": "memo://people/ada"})
            assert "memo about ada" in str(answer)
            answer = await connection.request("prompts/get", {"name": "greet", "arguments": {"name": "ada"}})
            assert "greeting for ada" in str(answer)
            assert await connection.retire() is None
            assert connection.state is ConnectionState.CLOSED
            assert home.changes == []


@pytest.mark.spec("calls")
@pytest.mark.parametrize("program", [SDK_SERVER, FASTMCP_SERVER], ids=["sdk", "fastmcp"])
async def test_a_real_http_server_learns_of_a_cancelled_call(program: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with http_peer(program) as url:
        async with house() as home:
            connection = await home.open(http_definition("p", url))
            async with anyio.create_task_group() as group:
                call: JsonObject = {"name": "hold", "arguments": {"gate": str(gate)}}
                group.start_soon(connection.request, "tools/call", call)
                await appears(Path(f"{gate}.entered"))
                group.cancel_scope.cancel()
            await appears(Path(f"{gate}.cancelled"))


async def appears(file: Path) -> None:
    """Return once another process has made the file."""
    while not await anyio.Path(file).exists():
        await anyio.sleep(0.01)


@pytest.mark.spec("connection")
async def test_a_real_stdio_server_serves_calls() -> None:
    async with house() as home:
        connection = await home.open(stdio_definition("p"))
        answer = await connection.request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        assert "hello" in str(answer)
        assert await connection.retire() is None


@pytest.mark.spec("connection")
async def test_a_child_that_dies_loses_its_call_and_comes_back_by_itself() -> None:
    async with house() as home:
        connection = await home.open(scripted_definition("p"))
        before = await connection.request("tools/call", {"name": "process", "arguments": {}})
        with pytest.raises(AnswerLost):
            await connection.request("tools/call", {"name": "die", "arguments": {}})
        await home.has_changed(2)
        assert home.changes == [ConnectionState.RECOVERING, ConnectionState.READY]
        after = await connection.request("tools/call", {"name": "process", "arguments": {}})
        assert before != after
        assert await connection.retire() is None


@pytest.mark.spec("references")
async def test_references_are_expanded_while_preparing_and_known_to_the_mask() -> None:
    environment = {"KEY": "canary-key-1", "TOKEN": "canary-token"}
    async with scripted_http() as peer, house(environment) as home:
        await home.open(
            http_definition(
                "p",
                peer.url,
                headers={"X-Key": "k-${KEY}"},
                authorization={"type": "bearer", "token": "${TOKEN}"},
            )
        )
        assert {seen.headers["x-key"] for seen in peer.seen} == {"k-canary-key-1"}
        assert {seen.headers["authorization"] for seen in peer.seen} == {"Bearer canary-token"}
        assert "canary" not in home.mask.mask("canary-key-1 canary-token")


@pytest.mark.spec("references")
async def test_a_workspace_may_reference_what_the_operator_lists_and_a_default_everything() -> None:
    environment = {"MCP_A": "a", "MCP": "b", "OTHER": "c"}
    async with scripted_http() as peer, house(environment, references=("MCP_*", "EXACT")) as home:

        def definition(name: str) -> dict[str, Any]:
            return http_definition("p", peer.url, headers={"X-Key": f"${{{name}}}"})

        await home.open(definition("MCP_A"))
        for name in ("MCP", "OTHER"):
            assert (await home.refused(definition(name))).code == "reference-refused"
        await home.open(definition("OTHER"), source="service")
        assert (await home.refused(definition("EXACT"))).code == "reference-missing"
        problem = await home.refused(definition("PLURNK_TOKEN"), source="service")
        assert problem.code == "reference-refused"


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "members", [{"headers": {"X-A": "${T}"}}, {"authorization": {"type": "bearer", "token": "${T}"}}]
)
async def test_an_expanded_value_that_would_split_a_request_is_refused_before_connecting(
    members: dict[str, Any],
) -> None:
    async with scripted_http() as peer, house({"T": "good\r\nX-Evil: 1"}) as home:
        problem = await home.refused(http_definition("p", peer.url, **members))
        assert problem.code == "definition-invalid"
        assert "good" not in str(problem.document())
        assert peer.connections == 0


@pytest.mark.spec("security")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
async def test_an_address_that_the_operator_forbids_is_refused(host: str) -> None:
    async with scripted_http() as peer, house(http_hosts="public") as home:
        problem = await home.refused(http_definition("p", peer.url.replace("127.0.0.1", host)))
        assert (problem.code, problem.status) == ("address-refused", 403)
        assert peer.connections == 0


@pytest.mark.spec("security")
async def test_a_process_that_the_operator_forbids_is_refused_and_http_stays_possible() -> None:
    async with scripted_http() as peer, house(stdio_policy="off") as home:
        assert (await home.refused(scripted_definition("p"))).code == "stdio-refused"
        await home.open(http_definition("h", peer.url))


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "script, code",
    [
        (error(-32000, "session header missing", status=400), "protocol-revision-unsupported"),
        (Reply(404, {"Content-Type": "text/html"}, "<html>"), "protocol-revision-unsupported"),
        (
            Reply(500, {"Content-Type": "application/json"}, '{"client_secret":"canary-body"}'),
            "server-unavailable",
        ),
        (Reply(307, {"Location": "http://evil.invalid/"}), "server-unavailable"),
        (Reply(401, {"WWW-Authenticate": "Bearer"}), "authorization-refused"),
        (Reply(raw=[], then="close"), "server-unavailable"),
        (stream(), "server-unavailable"),
    ],
)
async def test_what_discovery_decides_is_the_problem_and_nothing_of_the_peer_is_in_it(
    script: Script, code: str
) -> None:
    async with scripted_http({"server/discover": script}) as peer, house({"K": "canary-k"}) as home:
        definition = http_definition("p", f"{peer.url}?key=canary-q", headers={"X-K": "${K}"})
        problem = await home.refused(definition)
        assert problem.code == code
        assert "canary" not in str(problem.document())
        assert "initialize" not in peer.methods


@pytest.mark.spec("revision")
@pytest.mark.parametrize("way", ["legacy", "old"])
async def test_a_legacy_stdio_server_is_refused(way: str) -> None:
    async with house() as home:
        problem = await home.refused(scripted_definition("p", way))
        assert problem.code == "protocol-revision-unsupported"
        assert problem.facts["transport"] == "stdio"


@pytest.mark.spec("revision")
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_silence_is_unavailable_and_hints_at_a_legacy_server(transport: str) -> None:
    never = anyio.Event()
    async with (
        scripted_http({"server/discover": Reply(raw=[never])}) as peer,
        house(connect_timeout_ms=1000) as home,
    ):
        is_http = transport == "http"
        definition = http_definition("p", peer.url) if is_http else scripted_definition("p", "silent")
        problem = await home.refused(definition)
        assert problem.code == "server-unavailable"
        assert problem.retryable
        assert "a legacy server may stay silent" in problem.detail
        assert "PLURNK_MCP_CONNECT_TIMEOUT" in problem.detail


@pytest.mark.spec("prepare")
async def test_the_connect_timeout_bounds_the_lists_too() -> None:
    never = anyio.Event()
    answers: dict[str, Script] = {"server/discover": DISCOVERED, "tools/list": stream(": wait\n\n", never)}
    async with scripted_http(answers) as peer, house(connect_timeout_ms=200) as home:
        problem = await home.refused(http_definition("p", peer.url))
        assert problem.code == "server-unavailable"
        assert "legacy" not in problem.detail


@pytest.mark.spec("problems")
async def test_a_child_that_ends_while_it_is_prepared_tells_its_exit_status() -> None:
    async with house() as home:
        problem = await home.refused(scripted_definition("p", "dies"))
        assert (problem.code, problem.facts["exitStatus"]) == ("server-unavailable", 4)


@pytest.mark.spec("connection")
async def test_a_child_that_ends_at_once_always_tells_how_also_where_its_stdin_breaks_first() -> None:
    async with house() as it:
        for _ in range(25):
            with pytest.raises(Problem) as refused:
                await it.open(stdio_definition("p") | {"command": "sh", "args": ["-c", "exit 5"]})
            assert refused.value.facts["exitStatus"] == 5


@pytest.mark.spec("limits")
async def test_an_explicit_target_gets_too_many_and_others_wait_for_their_turn() -> None:
    gate = anyio.Event()
    held = stream(": wait\n\n", gate, "data: ", DISCOVERED.body, "\n\n")
    opened: list[str] = []
    async with (
        scripted_http({"server/discover": held}) as peer,
        house(max_preparations=1) as home,
    ):

        async def open_one(name: str) -> None:
            connection = await home.open(http_definition(name, peer.url), is_explicit=False)
            opened.append(connection.server)

        async with anyio.create_task_group() as group:
            group.start_soon(open_one, "a")
            await peer.has_seen(1)
            group.start_soon(open_one, "b")
            problem = await home.refused(http_definition("c", peer.url))
            assert (problem.code, problem.facts["setting"]) == ("too-many", "PLURNK_MAX_PREPARATIONS")
            assert len(peer.seen) == 1
            gate.set()
        assert opened == ["a", "b"]
        await home.open(http_definition("c", peer.url))


@pytest.mark.spec("lifecycle")
async def test_a_cancelled_preparation_closes_what_it_opened_and_frees_its_place() -> None:
    async with (
        scripted_http({"server/discover": [stream(": wait\n\n", "hang"), DISCOVERED]}) as peer,
        house(max_preparations=1) as home,
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(home.open, http_definition("p", peer.url))
            await peer.has_seen(1)
            group.cancel_scope.cancel()
        await peer.seen[0].gone.wait()
        assert (await home.open(http_definition("p", peer.url))).state is ConnectionState.READY


@pytest.mark.spec("shutdown")
async def test_closing_leaves_no_way_out() -> None:
    async with scripted_http() as peer, house() as home:
        connection = await home.open(http_definition("p", peer.url))
        await home.connector.close()
        with pytest.raises(RequestNotSent):
            await connection.request("tools/call", {"name": "echo"})
