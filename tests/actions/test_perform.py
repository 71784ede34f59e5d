"""Performing an action: found or refused, one log line, one audit row, never another's workspace."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog

from app.actions.perform import perform, stage_of
from app.core.principal import Principal
from app.core.problem import Problem, Stage
from app.core.problems import (
    ActionRequired,
    ActionUnknown,
    Internal,
    ParameterInvalid,
    ParameterRequired,
    ServerNotFound,
    StoreUnavailable,
    WorkspaceInvalid,
    WorkspaceRefused,
    WorkspaceRequired,
)
from tests.support.scripted_http import scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("actions")


def SILENT(_event: object) -> None:  # noqa: N802 a constant that is a function
    """Observe nothing."""


FAULTS: dict[str, tuple[object, type[Problem]]] = {
    "none": (None, ActionRequired),
    "no object": ([], ParameterInvalid),
    "no kind": ({}, ParameterRequired),
    "kind of another type": ({"kind": 5}, ParameterInvalid),
    "unknown kind": ({"kind": "workspace.mcp.lsit"}, ActionUnknown),
}


@pytest.mark.parametrize("action, expected", FAULTS.values(), ids=FAULTS)
async def test_what_is_no_action_is_refused(tmp_path: Path, action: object, expected: type[Problem]) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(expected):
            await perform(house.host, Principal(), "w", action, observe=SILENT)


@pytest.mark.parametrize(
    "name, expected", [("", WorkspaceRequired), ("../x", WorkspaceInvalid), (".x", WorkspaceInvalid)]
)
async def test_what_is_no_workspace_is_refused(tmp_path: Path, name: str, expected: type[Problem]) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(expected):
            await perform(house.host, Principal(), name, {"kind": "workspace.mcp.list"}, observe=SILENT)


@pytest.mark.spec("security", "observe")
async def test_a_workspace_token_opens_its_own_workspace_only(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        action = {"kind": "workspace.mcp.list"}
        await perform(house.host, Principal("w"), "w", action, observe=SILENT)
        with pytest.raises(WorkspaceRefused):
            await perform(house.host, Principal("w"), "v", action, observe=SILENT)
        detach = {"kind": "workspace.mcp.detach", "name": "q"}
        with pytest.raises(ServerNotFound):
            await perform(house.host, Principal("w"), "w", detach, observe=SILENT)
        assert [row.actor for row in await house.store.audit_rows()] == ["workspace"]


@pytest.mark.spec("observe")
async def test_every_action_leaves_one_log_line_and_a_change_an_audit_row(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        with structlog.testing.capture_logs() as logged:
            await house.act("attach", server=http(peer))
            await house.act("list")
            with pytest.raises(ServerNotFound):
                await house.act("detach", name="q")
            with pytest.raises(ParameterInvalid):
                await house.act("detach", name="Not A Name\n")
        lines = [line for line in logged if line["event"] == "action"]
        assert [(line["kind"], line["server"], line["outcome"], line["workspace"]) for line in lines] == [
            ("workspace.mcp.attach", "p", "ok", "w"),
            ("workspace.mcp.list", None, "ok", "w"),
            ("workspace.mcp.detach", "q", "server-not-found", "w"),
            ("workspace.mcp.detach", None, "parameter-invalid", "w"),
        ]
        assert all(line["ms"] >= 0 for line in lines)
        measures = house.host.telemetry.measures
        assert measures.actions.values == Counter((line["kind"], line["outcome"]) for line in lines)
        timed = {kind: sum(each.buckets) for (kind,), each in measures.action_seconds.values.items()}
        assert timed == Counter(line["kind"] for line in lines)
        rows = await house.store.audit_rows()
        assert [(row.actor, row.workspace, row.kind, row.server, row.outcome) for row in reversed(rows)] == [
            ("operator", "w", "workspace.mcp.attach", "p", "ok"),
            ("operator", "w", "workspace.mcp.detach", "q", "server-not-found"),
            ("operator", "w", "workspace.mcp.detach", None, "parameter-invalid"),
        ]


@pytest.mark.spec("observe")
async def test_a_change_whose_client_left_is_logged_and_audited_as_cancelled(tmp_path: Path) -> None:
    silent = stream(anyio.Event())
    async with scripted_http({"server/discover": silent}) as peer, workspace_house(tmp_path) as house:
        with structlog.testing.capture_logs() as logged:
            async with anyio.create_task_group() as group:

                async def attach() -> None:
                    await house.act("attach", server=http(peer))

                group.start_soon(attach)
                await peer.has_seen(1)
                group.cancel_scope.cancel()
        assert [line["outcome"] for line in logged if line["event"] == "action"] == ["cancelled"]
        assert [row.outcome for row in await house.store.audit_rows()] == ["cancelled"]


@pytest.mark.spec("observe")
async def test_a_change_that_was_stored_is_audited_as_made_once_though_its_client_left(
    tmp_path: Path,
) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        house.store.after_write = anyio.Event()
        with structlog.testing.capture_logs() as logged:
            async with anyio.create_task_group() as group:

                async def attach() -> None:
                    await house.act("attach", server=http(peer))

                group.start_soon(attach)
                await house.store.written.wait()
                group.cancel_scope.cancel()
                house.store.after_write.set()
        assert [line["outcome"] for line in logged if line["event"] == "action"] == ["cancelled"]
        assert [row.outcome for row in await house.store.audit_rows()] == ["ok"]
        assert (await house.rows()).keys() == (await house.listed()).keys() == {"p"}


@pytest.mark.spec("observe", "lifecycle")
async def test_a_change_that_could_not_be_stored_is_audited_as_that_alone(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        house.store.failure = StoreUnavailable("the disk is full")
        with pytest.raises(StoreUnavailable):
            await house.act("attach", server=http(peer))
        assert [row.outcome for row in await house.store.audit_rows()] == ["store-unavailable"]


@pytest.mark.spec("observe")
async def test_each_kind_of_change_leaves_one_audit_row(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        changes: list[tuple[str, dict[str, Any]]] = [
            ("attach", {"server": http(peer)}),
            ("replace", {"server": http(peer, tools=[])}),
            ("reconnect", {"name": "p"}),
            ("detach", {"name": "p"}),
            ("detach", {"name": "d"}),
            ("restore", {"name": "d"}),
        ]
        for kind, members in changes:
            await house.act(kind, **members)
        rows = await house.store.audit_rows()
        assert [(row.kind, row.outcome) for row in reversed(rows)] == [
            (f"workspace.mcp.{kind}", "ok") for kind, _ in changes
        ]


@pytest.mark.spec("problems")
async def test_a_bug_of_ours_is_a_problem_with_a_trace_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workspace_house(tmp_path) as house:

        def broken() -> Any:
            raise RuntimeError("secret-canary")

        monkeypatch.setattr(house.workspace(), "ready", broken)
        with structlog.testing.capture_logs() as logged, pytest.raises(Internal) as failed:
            await house.act("list")
        assert "secret-canary" not in str(failed.value.document())
        traces = [line["trace"] for line in logged if line["event"] == "internal"]
        assert traces == [failed.value.facts["trace"]]


def test_a_stage_is_what_the_table_says() -> None:
    assert stage_of("workspace.mcp.call") is Stage.OPERATION
    assert stage_of("workspace.mcp.attach") is Stage.MANAGEMENT
    assert stage_of("nonsense") is stage_of(5) is Stage.MANAGEMENT


async def test_a_caller_keeps_its_workspace_from_being_idle(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        seen: list[float] = []
        workspace = house.workspace()
        original = workspace.ready

        async def ready(server: str | None = None) -> Any:
            seen.append(workspace.idle_ms())
            return await original(server)

        workspace.ready = ready
        await _list(house)
        assert seen == [0.0]


async def _list(house: WorkspaceHouse) -> None:
    await perform(house.host, Principal(), "w", {"kind": "workspace.mcp.list"}, observe=SILENT)
