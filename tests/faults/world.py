"""One run of a case: its daemon, its peers, its workspaces and what came of each step. SPEC §status."""

import json
import sqlite3
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import httpx2

from tests.faults.cases import Json, Run, filled
from tests.faults.http_peer import answers_of, routes_of
from tests.faults.oauth_peer import OAuthPeer
from tests.faults.stdio_peer import StdioPeer
from tests.support.certificates import server_tls
from tests.support.daemon import Daemon
from tests.support.scripted_http import ScriptedHttp, Seen, scripted_http

CLIENT_SECRET = "client-secret-of-the-cases"
STDIO_ONLY = {"command", "args", "env", "cwd"}
"""The members of a definition that HTTP has none of."""
SHARED_ENVIRONMENT = {"PLURNK_HOST_EFFECT": "allow", "CS": CLIENT_SECRET}
"""Effects are one case's matter (C6-g1); the others call."""

SLOW = {"on": {"server/discover": [{"sleep": 3000}]}}

FORM: Json = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which environment?",
        "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}},
    },
}


@dataclass
class Record:
    """What came of one step."""

    kind: str
    number: int
    """The how-manieth of its kind, from one."""
    label: str = ""
    ok: bool = False
    status: int = 0
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    events: list[Json] = field(default_factory=list[Json])
    milliseconds: float = 0.0
    is_settled: bool = False
    operation: anyio.Event = field(default_factory=anyio.Event)
    """Set once the events name the operation."""

    @property
    def operation_id(self) -> str:
        """The id of the operation that this call is."""
        starts = [event for event in self.events if event["type"] == "TOOL_CALL_START"]
        return starts[0]["metadata"]["plurnk"]["operation"]

    @property
    def problem(self) -> Json:
        """The Problem that it ended in."""
        return {} if self.ok or not isinstance(self.body, dict) else self.body

    @property
    def interrupts(self) -> list[Json]:
        """The questions that its last run ended with."""
        outcome = self.events[-1].get("outcome", {}) if self.events else {}
        return outcome.get("interrupts", [])

    @property
    def shown(self) -> str:
        """Everything the client was shown, as text."""
        return json.dumps([self.body, self.events], ensure_ascii=False)


@dataclass
class World:
    """Everything that the steps change and the expectations look at."""

    run: Run
    daemon: Daemon
    directory: Path
    prefix: str
    """What makes the workspaces of this run its own on a shared daemon."""
    stdio: StdioPeer
    http: ScriptedHttp
    http2: ScriptedHttp
    group: anyio.abc.TaskGroup
    words: dict[str, Any] = field(default_factory=dict[str, Any])
    records: list[Record] = field(default_factory=list[Record])
    saved: dict[str, Any] = field(default_factory=dict[str, Any])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a step measured: growth, startup, an untouched file."""
    log_from: int = 0
    oauth: OAuthPeer | None = None
    """What guards ``http``, where the case has people sign in."""
    oauth2: OAuthPeer | None = None

    @property
    def case(self) -> Json:
        """The case with its words filled in."""
        tokens = (
            {"refresh_token": self.oauth.refresh_token} if self.oauth and self.oauth.refresh_token else {}
        )
        return filled(self.run.case, {**self.words, **tokens})

    def workspace(self, name: str) -> str:
        """Return the workspace that stands for the case's."""
        return f"{self.prefix}-{name}"

    def definition(self, given: Json) -> Json:
        """Return a definition to send; over the other transport where the run says so."""
        if self.run.is_over_http and given.get("transport") == "stdio":
            shared = {name: value for name, value in given.items() if name not in STDIO_ONLY}
            return {**shared, "transport": "http", "url": self.http.url}
        if self.run.is_over_stdio and given.get("transport") == "http":
            return {"name": given["name"], "transport": "stdio", "command": str(self.stdio.program)}
        return given

    @property
    def log(self) -> str:
        """What the daemon wrote since this run began, without the lines about workspaces of other runs."""
        lines = self.daemon.log[self.log_from :].splitlines(keepends=True)
        ours = f"workspace={self.prefix}-"
        return "".join(line for line in lines if "workspace=" not in line or ours in line)

    def begin(self, kind: str, label: str = "") -> Record:
        """Return the record of a new step."""
        number = 1 + sum(record.kind == kind for record in self.records)
        record = Record(kind, number, label)
        self.records.append(record)
        return record

    def of(self, reference: str) -> list[Record]:
        """Return the records that an expectation names: ``attach``, ``attach#2``, ``call fast``, ``c1``."""
        kind, _, number = reference.partition("#")
        named = [each for each in self.records if reference in {each.label, f"{each.kind} {each.label}"}]
        found = named or [
            each for each in self.records if each.kind == kind and (not number or each.number == int(number))
        ]
        assert found, f"no step {reference}"
        return found

    @property
    def last(self) -> Record:
        """The last step that changed or called something."""
        return [record for record in self.records if record.kind not in {"list", "describe"}][-1]

    @property
    def messages(self) -> list[Json]:
        """Return every JSON-RPC message that a peer got."""
        return self.stdio.messages + [seen.message for seen in self.http.seen if is_rpc(seen)]

    def rows(self) -> list[tuple[str, str, str | None]]:
        """Return workspace, name and definition of each stored attachment of this run."""
        connection = sqlite3.connect(f"file:{self.daemon.home / 'plurnk.db'}?mode=ro", uri=True)
        try:
            found = connection.execute(
                "SELECT workspace, name, definition FROM server_attachments"
                " WHERE workspace LIKE ? AND state = 'attached' ORDER BY 1, 2",
                (f"{self.prefix}-%",),
            )
            return found.fetchall()
        finally:
            connection.close()

    async def list(self, workspace: str) -> Json:
        """Return what ``workspace.mcp.list`` answers now."""
        return await self.daemon.act(self.workspace(workspace), "workspace.mcp.list")

    async def raw(self, method: str, path: str, headers: Mapping[str, str], body: str) -> httpx2.Response:
        """Return the answer of the daemon to a request of the case's own making."""
        async with self.daemon.client() as client:
            given = {"Content-Type": "application/json", **headers}
            return await client.request(method, path, headers=given, content=body)


@asynccontextmanager
async def world_of(run: Run, daemon: Daemon, directory: Path) -> AsyncGenerator[World]:
    """Give the peers and words of one run; the daemon need not run yet."""
    case = run.case
    peer = case.get("peer", {})
    secure = server_tls(directory)[0] if peer.get("t") == "https" else None
    host = peer.get("bind", "127.0.0.1")
    prefix = run.identity.lower()
    async with scripted_http() as second:
        words: dict[str, Any] = {"HTTP2": second.origin, "form": FORM}
        told = filled(peer, words)
        async with (
            scripted_http(answers_of(told), routes=routes_of(told), host=host, tls=secure) as first,
            anyio.create_task_group() as group,
        ):
            stdio = StdioPeer(directory / "peer", told)
            world = World(run, daemon, directory, prefix, stdio, first, second, group)
            world.words = {**words, **words_for(world)}
            world.oauth = _guarded(first, peer, world.words)
            world.oauth2 = _guarded(second, case.get("peer2", {}), world.words)
            world.log_from = len(daemon.log)
            yield world
            group.cancel_scope.cancel()


def _guarded(http: ScriptedHttp, told: Json, words: dict[str, Any]) -> OAuthPeer | None:
    """Put an authorization server before a peer where the case wants one."""
    if told.get("t") != "oauth":
        return None
    http.guard = guard = OAuthPeer(http, filled(told, words))
    return guard


def is_rpc(seen: Seen) -> bool:
    """Whether a request is a message, and no form or registration."""
    is_json = seen.headers.get("content-type", "").startswith("application/json")
    return bool(seen.body) and is_json and "jsonrpc" in seen.message


def words_for(world: World) -> dict[str, Any]:
    """Return what the case's words stand for."""
    address = urlsplit(world.http.origin)
    directory = str(world.directory)
    touch = {"name": "p", "transport": "stdio", "command": "touch", "args": [f"{directory}/pwn"]}
    return {
        "FAKE": str(world.stdio.program),
        "FAKE_PROGRAM": world.stdio.text,
        "HTTP": world.http.origin,
        "HTTPS": world.http.origin,
        "HOSTPORT": address.netloc,
        "PORT": str(address.port),
        "PORT2": str(urlsplit(world.http2.origin).port),
        "REDIRECT": "http://127.0.0.1:7777/cb",
        "CIMD": "https://client.example/metadata.json",
        "client_secret": CLIENT_SECRET,
        "TMP": directory,
        "ACTION": f"/v1/workspaces/{world.workspace('w1')}/actions",
        "LIST_ACTION": json.dumps({"kind": "workspace.mcp.list"}),
        "ATTACH_TOUCH": json.dumps({"kind": "workspace.mcp.attach", "server": touch}),
        "SLOW3S": str(StdioPeer(world.directory / "slow", SLOW).program),
    }


def now_ms() -> float:
    """Return a clock in milliseconds."""
    return time.monotonic() * 1000
