"""Every Problem that a workspace's client can cause, by type and facts, through both doors. SPEC §problems.

The statuses and what may be tried again are read from the table of SPEC.md. What a door refuses before a run
begins is in ``test_door_problems``. ``internal`` would need a bug.
"""

import json
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input, running_daemon
from tests.support.peers.programs import scripted_definition, stdio_definition
from tests.support.scripted_http import Reply, scripted_http

pytestmark = [pytest.mark.timeout(200), pytest.mark.spec("problems")]

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "scripted_stdio.py"
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
TIGHT = {
    "PLURNK_MAX_RESULT": "2000",
    "PLURNK_MAX_WORKSPACE_OPERATIONS": "1",
    "PLURNK_PROPOSAL_TIMEOUT": "300",
    "PLURNK_MCP_REQUEST_TIMEOUT": "700",
    "PLURNK_REFERENCES": "[]",
    "PLURNK_HTTP_HOSTS": "public",
    "PLURNK_STDIO_COMMANDS": json.dumps([sys.executable]),
}
ANY = object()
"""A fact that has to be there, with any value."""


@pytest.fixture(scope="module")
async def tight(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """A daemon whose operator allows little."""
    async with running_daemon(tmp_path_factory.mktemp("tight"), TIGHT) as daemon:
        yield daemon


def rows() -> dict[str, tuple[int, bool]]:
    """Return status and retryability of every code, out of the table of SPEC.md."""
    text = (ROOT / "SPEC.md").read_text().split("## §problems", 1)[1].split("\n## §", 1)[0]
    found: dict[str, tuple[int, bool]] = {}
    for line in text.splitlines():
        cells = line.strip("|").split(" | ")
        if line.startswith("| `") and cells[1].strip().isdigit():
            for code in re.findall(r"`([a-z-]+)`", cells[0]):
                found[code] = (int(cells[1]), cells[2].strip() == "yes")
    return found


def peer(**on: list[Json]) -> Json:
    """Return the definition of a peer with one ``read`` tool; ``on`` says what it does, by method."""
    discovered = {**FRESH, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    script = {
        "server/discover": [{"result": discovered}],
        "tools/list": [{"result": {**FRESH, "tools": [ECHO]}}],
        **{name.replace("_", "/"): steps for name, steps in on.items()},
    }
    return stdio_definition("p", SCRIPT, json.dumps({"on": script}), read=["echo"])


def attaching(server: Json) -> Json:
    return {"kind": "workspace.mcp.attach", "server": server}


def call(tool: str = "echo", **arguments: Any) -> Json:
    return {"kind": "workspace.mcp.call", "server": "p", "tool": tool, "arguments": arguments}


@dataclass(frozen=True)
class Client:
    """A client of one workspace at one door."""

    daemon: Daemon
    workspace: str
    door: str
    directory: Path

    async def problem(self, action: Json) -> Json:
        """Return the Problem that the action ends in."""
        if self.door == "rest":
            async with self.daemon.client() as client:
                answer = await client.post(f"/v1/workspaces/{self.workspace}/actions", json=action)
            return self._answered(answer)
        return await self._run(run_input(self.workspace, action), "RUN_FINISHED")

    async def resumed(self, interrupt: str, entry: Json, *, terminal: str = "RUN_FINISHED") -> Json:
        """Return the Problem that answering this interrupt ends in."""
        if self.door == "rest":
            async with self.daemon.client() as client:
                path = f"/v1/workspaces/{self.workspace}/interactions/{interrupt}"
                return self._answered(await client.post(path, json=entry))
        entry = {"interruptId": interrupt, **entry}
        return await self._run(run_input(self.workspace, None, resume=[entry]), terminal)

    async def proposed(self) -> Json:
        """Return the interrupt that a call of a ``host`` tool ends in."""
        body = await self.daemon.act(self.workspace, **call("echo", text="x"))
        return body["interrupts"][0]

    async def attach(self, server: Json) -> None:
        """Attach a server that is well."""
        await self.daemon.attach(self.workspace, server)

    @staticmethod
    def _answered(answer: Any) -> Json:
        problem: Json = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        assert problem["status"] == answer.status_code
        return problem

    async def _run(self, body: Json, terminal: str) -> Json:
        async with self.daemon.run(body) as stream:
            events = [event async for event in stream]
        results = [event for event in events if event["type"] == "CUSTOM"]
        (value,) = [event["value"] for event in results]
        assert value["ok"] is False, value
        assert [event["type"] for event in events[-2:]] == ["CUSTOM", terminal]
        if terminal == "RUN_FINISHED":
            assert events[-1]["result"] == value
        else:
            assert events[-1]["metadata"]["plurnk"]["problem"] == value["problem"]
        return value["problem"]


Provoke = Callable[[Client], Awaitable[Json]]
ACCEPT = {"status": "resolved", "payload": {"decision": "accept"}}


@dataclass(frozen=True)
class Case:
    """How a Problem is caused and what it says."""

    code: str
    provoke: Provoke
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stage: str = "management"
    outcome: str | None = None
    is_tight: bool = False


def at_once(action: Json, *, attached: Json | None = None) -> Provoke:
    """Return what provokes by one action, on a workspace that has at most this server."""

    async def provoke(client: Client) -> Json:
        if attached is not None:
            await client.attach(attached)
        return await client.problem(action)

    return provoke


def management(code: str, action: Json, facts: Json, *, attached: Json | None = None, **more: Any) -> Case:
    return Case(code, at_once(action, attached=attached), facts, **more)


def operation(
    code: str, attached: Json, facts: Json, outcome: str, *, action: Json | None = None, **more: Any
) -> Case:
    provoke = at_once(action or call(), attached=attached)
    return Case(code, provoke, facts, stage="operation", outcome=outcome, **more)


async def authorization_refused(client: Client) -> Json:
    async with scripted_http({"server/discover": Reply(401)}) as web:
        return await client.problem(attaching({"name": "p", "transport": "http", "url": web.url}))


async def not_connected(client: Client) -> Json:
    way = client.directory / "way"
    way.write_text("good")
    await client.attach(scripted_definition("p", f"@{way}", read=["die", "echo"]))
    assert (await client.problem(call("die")))["code"] == "tool-call-failed"
    way.write_text("legacy")
    return await client.problem(call("echo", text="x"))


async def busy(client: Client) -> Json:
    gate, problems = client.directory / "gate", list[Json]()
    await client.attach(scripted_definition("p", read=["hold"]))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: client.daemon.act(client.workspace, **call("hold", gate=str(gate))))
        while not gate.with_suffix(".entered").exists():
            await anyio.sleep(0.01)
        problems.append(await client.problem({"kind": "workspace.mcp.detach", "name": "p"}))
        gate.with_suffix(".open").touch()
    return problems[0]


async def changed(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    interrupt = await client.proposed()
    other = scripted_definition("p", env={"CHANGED": "1"})
    await client.daemon.act(client.workspace, "workspace.mcp.replace", server=other)
    return await client.resumed(interrupt["id"], ACCEPT)


async def expired(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    interrupt = await client.proposed()
    await anyio.sleep(0.4)
    return await client.resumed(interrupt["id"], ACCEPT)


async def conflicting(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    interrupt = await client.proposed()
    async with client.daemon.client() as other:
        path = f"/v1/workspaces/{client.workspace}/interactions/{interrupt['id']}"
        assert (await other.post(path, json={"status": "cancelled"})).json()["rejected"] is True
    return await client.resumed(interrupt["id"], ACCEPT)


async def unfitting(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    interrupt = await client.proposed()
    answer = {"status": "resolved", "payload": {"decision": "perhaps"}}
    problem = await client.resumed(interrupt["id"], answer, terminal="RUN_ERROR")
    again = await client.resumed(interrupt["id"], answer, terminal="RUN_ERROR")
    assert again == problem, "it was consumed"
    return problem


async def unknown_interrupt(client: Client) -> Json:
    return await client.resumed("int-nobody", ACCEPT)


async def cancelled(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    interrupt = await client.proposed()
    operation = interrupt["metadata"]["plurnk"]["operation"]
    await client.daemon.act(client.workspace, "workspace.mcp.cancel", operation=operation)
    return await client.resumed(interrupt["id"], ACCEPT)


async def one_too_many(client: Client) -> Json:
    await client.attach(scripted_definition("p"))
    await client.proposed()
    return await client.problem(call("echo", text="x"))


LIST = {"kind": "workspace.mcp.list"}
GHOST = {"kind": "workspace.mcp.detach", "name": "ghost"}
NOWHERE = {"name": "p", "transport": "stdio", "command": "/nowhere/at/all"}
LOCAL = {"name": "p", "transport": "http", "url": "http://127.0.0.1:9/mcp"}
BY_SERVER = {"server": "p"}
REQUIRED = {"requiredRevision": "2026-07-28", "requiredMethod": "server/discover"}
GOOD = scripted_definition("p")
TEXT = {"content": [{"type": "text", "text": "x" * 3000}]}

CASES = [
    management("action-unknown", {"kind": "workspace.mcp.nope"}, {"kind": "workspace.mcp.nope"}),
    management("parameter-required", {"kind": "workspace.mcp.detach"}, {"field": "name"}),
    management("parameter-invalid", {**LIST, "odd": 1}, {"field": "odd"}),
    management("definition-invalid", attaching({**NOWHERE, "odd": 1}), {"errors": ANY}),
    management(
        "reference-missing",
        attaching({**NOWHERE, "args": ["${NOT_SET_ANYWHERE}"]}),
        {**BY_SERVER, "variable": "NOT_SET_ANYWHERE", "field": "/args/0"},
    ),
    management(
        "reference-refused",
        attaching({**NOWHERE, "env": {"A": "${HOME}"}}),
        {**BY_SERVER, "variable": "HOME", "field": "/env/A"},
        is_tight=True,
    ),
    management("stdio-refused", attaching(NOWHERE), {"setting": "PLURNK_STDIO_COMMANDS"}, is_tight=True),
    management("address-refused", attaching(LOCAL), {"setting": "PLURNK_HTTP_HOSTS"}, is_tight=True),
    management("server-exists", attaching(GOOD), BY_SERVER, attached=GOOD),
    management("server-not-found", GHOST, {"server": "ghost"}),
    Case("server-busy", busy, {**BY_SERVER, "operations": ANY}),
    management(
        "protocol-revision-unsupported",
        attaching(scripted_definition("p", "legacy")),
        {**BY_SERVER, "transport": "stdio", **REQUIRED},
    ),
    management(
        "capability-required",
        attaching(peer(server_discover=[{"error": {"code": -32021, "message": "sampling"}}])),
        BY_SERVER,
    ),
    management("server-unavailable", attaching(NOWHERE), {**BY_SERVER, "transport": "stdio"}),
    management(
        "server-unavailable",
        attaching(peer(tools_list=[{"err": "bye"}, {"exit": 7}])),
        {**BY_SERVER, "transport": "stdio", "exitStatus": 7, "stderr": ANY},
    ),
    management(
        "catalog-invalid",
        attaching(scripted_definition("p", "duplicate")),
        {**BY_SERVER, "reason": "tool-duplicate", "names": ["echo"]},
    ),
    Case("authorization-refused", authorization_refused, BY_SERVER),
    management(
        "oauth-not-pending",
        {"kind": "workspace.mcp.oauth.complete", "name": "p", "callbackUrl": "http://127.0.0.1/cb"},
        BY_SERVER,
    ),
    Case("server-not-connected", not_connected, {**BY_SERVER, "cause": ANY}, "operation", "not-sent"),
    Case("server-changed", changed, BY_SERVER, "operation", "not-sent"),
    operation("tool-not-found", GOOD, {**BY_SERVER, "tool": "no"}, "not-sent", action=call("no")),
    operation(
        "resource-not-found",
        GOOD,
        BY_SERVER,
        "not-sent",
        action={"kind": "workspace.mcp.read", "uri": "p:///resources/x"},
    ),
    operation(
        "prompt-not-found",
        GOOD,
        BY_SERVER,
        "not-sent",
        action={"kind": "workspace.mcp.read", "uri": "p:///prompts/x"},
    ),
    operation("arguments-invalid", GOOD, {**BY_SERVER, "tool": "echo", "errors": ANY}, "not-sent"),
    operation(
        "remote-error",
        peer(tools_call=[{"error": {"code": -32099, "message": "m" * 600, "data": {"a": 1}}}]),
        {**BY_SERVER, "remote": {"code": -32099, "message": "m" * 512, "data": {"a": 1}}},
        "rejected",
    ),
    operation("tool-call-failed", peer(tools_call=[{"exit": 1}]), BY_SERVER, "unknown"),
    operation("tool-result-invalid", peer(tools_call=[{"result": {**FRESH}}]), BY_SERVER, "executed"),
    operation(
        "result-too-large",
        peer(tools_call=[{"result": {**FRESH, **TEXT}}]),
        {**BY_SERVER, "limit": 2000},
        "executed",
        is_tight=True,
    ),
    operation(
        "input-unsupported",
        peer(
            tools_call=[
                {"result": {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}}
            ]
        ),
        BY_SERVER,
        "rejected",
    ),
    operation("operation-timeout", peer(tools_call=[]), {"timeoutMs": 700}, "unknown", is_tight=True),
    Case("interrupt-not-found", unknown_interrupt, {"interrupt": "int-nobody"}, "operation", "not-sent"),
    Case("interrupt-expired", expired, {"interrupt": ANY}, "operation", "not-sent", is_tight=True),
    Case("interrupt-conflict", conflicting, {"interrupt": ANY}, "operation", "not-sent"),
    Case("answer-invalid", unfitting, {"interrupt": ANY, "errors": ANY}, "operation", "not-sent"),
    management(
        "operation-not-found",
        {"kind": "workspace.mcp.cancel", "operation": "op-nobody"},
        {"operation": "op-nobody"},
        stage="operation",
        outcome="not-sent",
    ),
    Case(
        "operation-cancelled",
        cancelled,
        {"operation": ANY, "by": "workspace.mcp.cancel"},
        "operation",
        "not-sent",
    ),
    Case(
        "too-many",
        one_too_many,
        {"limit": 1, "setting": "PLURNK_MAX_WORKSPACE_OPERATIONS"},
        "operation",
        "not-sent",
        is_tight=True,
    ),
]


@pytest.mark.parametrize("door", ["agui", "rest"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
async def test_a_problem_is_of_its_type_and_has_its_facts(
    case: Case, door: str, daemon: Daemon, tight: Daemon, workspace: str, tmp_path: Path
) -> None:
    client = Client(tight if case.is_tight else daemon, workspace, door, tmp_path)
    problem = await case.provoke(client)
    assert problem["code"] == case.code, problem
    assert problem["type"] == f"https://problems.plurnk.dev/mcp/{case.stage}/{case.code}"
    assert (problem["status"], problem["retryable"]) == rows()[case.code]
    assert (problem["stage"], problem.get("outcome")) == (case.stage, case.outcome)
    assert problem["title"]
    assert problem["detail"].endswith((".", "!"))
    for name, value in case.facts.items():
        assert problem.get(name) == value or (value is ANY and problem.get(name)), (name, problem)
