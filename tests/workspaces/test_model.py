"""Whatever happens in whatever order: database, memory, connections and live state tell one story. SPEC §lifecycle.

Generated commands act on a whole middle of the daemon, over a real database and real connections to peers that come
and go, and beside it on a reference: the map of each workspace, from which SPEC §effective makes what is effective.
"""

import asyncio
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.core.problem import Problem
from app.core.problems import StoreUnavailable
from app.core.summary import live_entry
from app.workspaces import hydration
from app.workspaces.workspace import Workspace
from tests.support.live_state import applied
from tests.support.scripted_http import Reply, ScriptedHttp, default_answers, scripted_http
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house
from tests.support.workspace_reference import (
    COMMANDS,
    DEFAULTS,
    NAMES,
    WORKSPACES,
    Change,
    Command,
    Ended,
    Left,
    Reference,
    Together,
    Use,
    World,
)

pytestmark = [pytest.mark.spec("lifecycle", "hydration", "effective", "state"), pytest.mark.timeout(240)]

DOWN = Reply(status=503)


class Middle:
    """The system under test beside its reference."""

    def __init__(self, directory: Path, peers: dict[str, ScriptedHttp], mode: str) -> None:
        self.directory = directory
        self.peers = peers
        self.environment = {"PLURNK_HYDRATION": mode}
        self.is_strict = mode == "strict"
        self.reference = Reference()
        self.stack = AsyncExitStack()
        self.heard: dict[str, Any] = {}
        self.generations: dict[tuple[str, str], int] = {}

    @property
    def house(self) -> WorkspaceHouse:
        return self._house

    async def start(self) -> None:
        defaults = {name: http(self.peers[peer], name) for name, peer in DEFAULTS.items()}
        self._house = await self.stack.enter_async_context(
            workspace_house(self.directory, defaults=defaults, environment=self.environment)
        )
        self.generations.clear()
        for workspace in map(self._house.workspace, WORKSPACES):
            document: Any = workspace.state.snapshot()
            self.heard[workspace.name] = document
            workspace.state.subscribe(lambda delta, document=document: applied(document, list(delta)))

    async def stop(self) -> None:
        """End the daemon's middle; nothing of it may be left."""
        self.reference.leases.clear()
        await self.stack.aclose()
        assert self.house.connector.unretired() == []
        assert [task for task in asyncio.all_tasks() if _is_ours(task)] == []

    async def perform(self, command: Command) -> None:
        match command:
            case Change():
                expected = self.reference.verdict(command)
                assert (await self._outcome(command)) == expected, command
                if expected == "ok":
                    self._happened(command)
            case Left(change, turns):
                await self._left(change, turns)
            case Together(changes):
                await self._together(changes)
            case Ended(changes, turns):
                await self._ended(changes, turns)
            case Use():
                await self._use(command)
            case World():
                await self._turn(command)

    async def _outcome(self, change: Change, *, is_ending: bool = False) -> str:
        members: dict[str, Any] = {"name": change.name}
        if change.kind in {"attach", "replace"}:
            members = {"server": http(self.peers[change.peer], change.name)}
        try:
            answered = await self.house.act(change.kind, change.workspace, **members)
        except Problem as problem:
            return problem.code
        assert answered["status"] == (201 if change.kind == "attach" else 200)
        if change.kind != "detach" and not is_ending:
            assert answered["server"]["state"] == "connected"
        return "ok"

    def _happened(self, change: Change) -> None:
        self.reference.maps[change.workspace] = self.reference.after(change)
        key = (change.workspace, change.name)
        generation = self.house.workspace(change.workspace).generation(change.name)
        assert generation > self.generations.get(key, 0)

    async def _left(self, change: Change, turns: int) -> None:
        """The change happens as a whole or not at all."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._outcome, change)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        await self._adopt(change.workspace, [], perhaps=[change])

    async def _together(self, changes: Sequence[Change]) -> None:
        """Every answer is of an order in which they may have happened; a change of another name never matters."""
        outcomes: list[tuple[Change, str]] = []

        async def one(change: Change) -> None:
            outcomes.append((change, await self._outcome(change)))

        async with anyio.create_task_group() as group:
            for change in changes:
                group.start_soon(one, change)
        for name in {change.name for change in changes}:
            mine = [(change, code) for change, code in outcomes if change.name == name]
            if len(mine) == 1:
                assert mine[0][1] == self.reference.verdict(mine[0][0]), outcomes
        await self._adopt(changes[0].workspace, [change for change, code in outcomes if code == "ok"])

    async def _ended(self, changes: Sequence[Change], turns: int) -> None:
        """What was answered is durable; each of the others is, or is not."""
        done: list[Change] = []

        async def one(change: Change) -> None:
            if await self._outcome(change, is_ending=True) == "ok":
                done.append(change)

        with anyio.CancelScope() as clients:
            async with anyio.create_task_group() as group:
                for change in changes:
                    group.start_soon(one, change)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                await self.house.manager.shut_down()
                clients.cancel()
        await self.stop()
        await self.start()
        self._set_store()
        await self._adopt(changes[0].workspace, done, perhaps=changes)

    async def _adopt(self, workspace: str, done: Sequence[Change], *, perhaps: Sequence[Change] = ()) -> None:
        """Take what is durable as true, where each name is what one of its changes, or none, makes of it."""
        before, rows = self.reference.maps[workspace], await self._rows(workspace)
        for name in NAMES:
            made = [self.reference.after(each).get(name, "-") for each in done if each.name == name]
            allowed = made or [before.get(name, "-")]
            allowed += [self.reference.after(each).get(name, "-") for each in perhaps if each.name == name]
            assert rows.get(name, "-") in allowed, (name, done)
        self.reference.maps[workspace] = rows

    async def _use(self, use: Use) -> None:
        workspace, key = self.house.workspace(use.workspace), (use.workspace, use.name)
        match use.kind:
            case "list":
                await self._list(use.workspace)
            case "lease":
                await self._lease(workspace, use.name)
            case "release":
                if (lease := self.reference.leases.pop(key, None)) is not None:
                    lease.release()
            case "idle":
                await workspace.go_idle(0)
            case "due":
                workspace.hydration._due = 0.0

    async def _lease(self, workspace: Workspace, name: str) -> None:
        key, code = (workspace.name, name), "ok"
        if key in self.reference.leases:
            return
        try:
            self.reference.leases[key] = await workspace.lease(name, "op")
        except Problem as problem:
            code = problem.code
        is_shown = name in self.reference.effective(workspace.name)
        assert code in ({"ok", "server-not-connected"} if is_shown else {"server-not-found"})

    async def _list(self, workspace: str) -> None:
        listed = await self.house.act("list", workspace)
        shown = {each["name"]: each["source"] for each in listed["servers"]}
        effective = self.reference.effective(workspace)
        assert shown == {name: source for name, (source, _) in effective.items()}
        assert list(shown) == sorted(shown)
        tombstones = sorted(name for name, peer in self.reference.maps[workspace].items() if peer is None)
        assert listed["detached"] == tombstones

    async def _turn(self, world: World) -> None:
        match world.kind:
            case "restart":
                await self.stop()
                await self.start()
                self._set_store()
            case "break" | "mend":
                self.reference.is_shaky_up = world.kind == "mend"
                healthy = default_answers()["server/discover"]
                self.peers["shaky"].answers["server/discover"] = (
                    healthy if self.reference.is_shaky_up else DOWN
                )
            case "store-fails" | "store-works":
                self.reference.is_store_up = world.kind == "store-works"
                self._set_store()

    def _set_store(self) -> None:
        self.house.store.failure = None if self.reference.is_store_up else StoreUnavailable("it is full")

    async def _rows(self, workspace: str) -> dict[str, str | None]:
        """Return what is durable, as the reference has it."""
        peers = {peer.url: name for name, peer in self.peers.items()}
        rows = await self.house.rows(workspace)
        return {name: _peer_of(record, peers) for name, record in rows.items()}

    async def check(self) -> None:
        """Whatever is under way ends, and then everything tells the same."""
        for workspace in WORKSPACES:
            assert await self._rows(workspace) == self.reference.maps[workspace]
        faults: list[str] = ["not looked"]
        with anyio.move_on_after(5):
            while faults:
                faults = list(self._faults())
                if faults:
                    await anyio.sleep(0.002)
        assert not faults

    def _faults(self) -> Iterable[str]:
        connections = list[Any]()
        for workspace in map(self.house.workspace, WORKSPACES):
            connections += workspace.connections()
            yield from self._faults_of(workspace)
        if set(connections) != set(self.house.connector.unretired()):
            yield "a connection is open that is not published, or the other way round"

    def _faults_of(self, workspace: Workspace) -> Iterable[str]:
        servers, state = workspace.snapshot.servers, workspace.state.snapshot()
        if state["servers"] != {name: live_entry(server) for name, server in servers.items()}:
            yield "the live state is not that of the snapshot"
        if state != self.heard[workspace.name]:
            yield "a listener heard another story"
        yield from self._faults_of_effect(workspace)
        are_connected = [server.is_connected for server in servers.values()]
        if self.is_strict and workspace.hydration.is_done and not all(are_connected):
            yield "a part of a strict workspace is published"
        for name in NAMES:
            generation, key = workspace.generation(name), (workspace.name, name)
            if generation < self.generations.get(key, 0):
                yield "a generation went back"
            self.generations[key] = generation

    def _faults_of_effect(self, workspace: Workspace) -> Iterable[str]:
        servers = workspace.snapshot.servers
        if workspace.hydration.is_running:
            yield "a hydration is running"
        elif servers:
            effective = self.reference.effective(workspace.name)
            shown = {name: (server.source, _url(server.definition)) for name, server in servers.items()}
            if shown != {name: (source, self.peers[peer].url) for name, (source, peer) in effective.items()}:
                yield "the snapshot does not show what is effective"
            if workspace.effective.servers.keys() != effective.keys():
                yield "the effective set is not that of the reference"
        elif workspace.hydration.is_done and self.reference.effective(workspace.name):
            yield "nothing is shown"


def _peer_of(record: AttachmentRecord, peers: dict[str, str]) -> str | None:
    match record:
        case Attached(definition):
            return peers[orjson.loads(definition)["url"]]
        case Detached():
            return None


def _url(definition: object) -> str:
    return str(getattr(definition, "url", ""))


def _is_ours(task: "asyncio.Task[Any]") -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "/app/" in code.co_filename


async def _run(mode: str, is_shaky_up: bool, commands: Sequence[Command]) -> None:
    with tempfile.TemporaryDirectory(prefix="plurnk-test-") as directory, anyio.fail_after(60):
        async with scripted_http() as steady, scripted_http() as shaky:
            middle = Middle(Path(directory), {"steady": steady, "shaky": shaky}, mode)
            await middle.start()
            await middle.perform(World("mend" if is_shaky_up else "break"))
            for command in commands:
                await middle.perform(command)
                await middle.check()
            for workspace in WORKSPACES:
                await middle._list(workspace)
            await middle.check()
            await middle.stop()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an isolated server's retries meet the changes."""
    monkeypatch.setattr(hydration, "BACK_OFF_FIRST_S", 0.004)


@pytest.mark.parametrize("mode", ["strict", "isolate"])
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(is_shaky_up=st.booleans(), commands=st.lists(COMMANDS, max_size=20))
def test_database_memory_connections_and_live_state_tell_one_story(
    mode: str, is_shaky_up: bool, commands: Sequence[Command]
) -> None:
    anyio.run(_run, mode, is_shaky_up, commands)
