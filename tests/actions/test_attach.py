"""``workspace.mcp.attach``: what it refuses before anything is prepared."""

from pathlib import Path
from typing import Any

import pytest

from app.core.problem import Problem
from app.core.problems import (
    DefinitionInvalid,
    ParameterInvalid,
    ParameterRequired,
    ReferenceMissing,
    ReferenceRefused,
    ServerExists,
    StdioRefused,
)
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("actions")


async def test_an_effective_name_is_refused_default_or_not(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        await house.act("attach", server=http(peer))
        seen = len(peer.seen)
        for name in ("p", "d"):
            with pytest.raises(ServerExists) as refused:
                await house.act("attach", server=http(peer, name))
            assert refused.value.facts == {"server": name}
        assert len(peer.seen) == seen


@pytest.mark.spec("effective")
async def test_attaching_over_a_tombstone_replaces_it(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        await house.act("detach", name="d")
        assert (await house.act("list"))["detached"] == ["d"]
        await house.act("attach", server=http(peer, "d"))
        assert (await house.act("list"))["detached"] == []
        assert (await house.listed())["d"]["source"] == "workspace"


REFUSED: dict[str, tuple[dict[str, Any], type[Problem]]] = {
    "no definition": ({}, ParameterRequired),
    "no object": ({"server": "x"}, ParameterInvalid),
    "an unknown member": (
        {"server": {"name": "p", "transport": "http", "url": "URL", "Tools": []}},
        DefinitionInvalid,
    ),
    "a missing reference": (
        {"server": {"name": "p", "transport": "http", "url": "URL", "headers": {"X-K": "a ${NOPE_1} b"}}},
        ReferenceMissing,
    ),
    "a reference that the operator does not lend": (
        {"server": {"name": "p", "transport": "http", "url": "URL", "headers": {"X-K": "${SECRET}"}}},
        ReferenceRefused,
    ),
    "a process that the operator does not allow": (
        {"server": {"name": "p", "transport": "stdio", "command": "/bin/true"}},
        StdioRefused,
    ),
    "a client secret that the operator does not lend": (
        {
            "server": {
                "name": "p",
                "transport": "http",
                "url": "URL",
                "authorization": {"type": "client-credentials", "clientId": "c", "clientSecret": "${SECRET}"},
            }
        },
        ReferenceRefused,
    ),
}


@pytest.mark.spec("definition", "references", "oauth")
@pytest.mark.parametrize("members, expected", REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_reaches_no_peer_and_leaves_nothing(
    tmp_path: Path, members: dict[str, Any], expected: type[Problem]
) -> None:
    environment = {
        "PLURNK_REFERENCES": '["LENT_*"]',
        "PLURNK_STDIO_POLICY": "defaults",
        "SECRET": "canary-secret",
    }
    async with scripted_http() as peer, workspace_house(tmp_path, environment=environment) as house:
        if isinstance(members.get("server"), dict) and "url" in members["server"]:
            members = {"server": {**members["server"], "url": peer.url}}
        if expected is ReferenceMissing:
            members = {"server": {**members["server"], "headers": {"X-K": "a ${LENT_NOPE} b"}}}
        with pytest.raises(expected) as refused:
            await house.act("attach", **members)
        assert "canary-secret" not in str(refused.value.document())
        assert peer.seen == []
        assert await house.listed() == {}
        assert await house.rows() == {}
