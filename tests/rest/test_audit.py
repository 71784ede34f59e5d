"""What REST shows of the audit table, and to whom."""

from datetime import UTC, datetime

import pytest

from tests.support.doors_house import doors_house

pytestmark = pytest.mark.spec("agui", "observe")


@pytest.mark.spec("security")
async def test_the_operator_alone_reads_the_audit_table() -> None:
    async with doors_house({}) as doors:
        token = doors.tokens.for_workspace("a")
        await doors.act({"kind": "workspace.mcp.detach", "name": "absent"}, workspace="b")
        await doors.act({"kind": "workspace.mcp.detach", "name": "gone"}, workspace="a", token=token)
        seen = (await doors.get("/v1/audit")).json()["audit"]
        newest = (await doors.get("/v1/audit?limit=1")).json()["audit"]
        of_b = (await doors.get("/v1/audit?workspace=b")).json()["audit"]
        refused = await doors.get("/v1/audit", token=token)
    assert [{**row, "at": ""} for row in seen] == [
        {
            "at": "",
            "actor": actor,
            "workspace": workspace,
            "kind": "workspace.mcp.detach",
            "server": server,
            "outcome": "server-not-found",
        }
        for actor, workspace, server in [("workspace", "a", "gone"), ("operator", "b", "absent")]
    ]
    assert datetime.fromisoformat(seen[0]["at"]).tzinfo == UTC
    assert (newest, of_b) == (seen[:1], seen[1:])
    assert (refused.status_code, refused.json()["code"]) == (403, "workspace-refused")


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "query, code",
    [
        ("limit=0", "parameter-invalid"),
        ("limit=1001", "parameter-invalid"),
        ("limit=%C2%B2", "parameter-invalid"),
        (f"limit={'9' * 5000}", "parameter-invalid"),
        ("limit=", "parameter-invalid"),
        ("since=now", "parameter-invalid"),
        ("workspace=.bad", "workspace-invalid"),
    ],
)
async def test_a_query_that_asks_for_something_else_is_refused(query: str, code: str) -> None:
    async with doors_house({}) as doors:
        answer = await doors.get(f"/v1/audit?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
