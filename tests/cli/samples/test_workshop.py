"""The sample server over stdio, as the official SDK's client sees it."""

import sys

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client

from app.cli.samples.server import REVISION


@pytest.mark.spec("revision")
async def test_the_official_client_uses_all_of_it() -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def observe(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    parameters = StdioServerParameters(command=sys.executable, args=["-m", "app.cli.samples.workshop"])
    async with Client(parameters, mode=REVISION) as client:
        built = await client.call_tool("build", {"thing": "box"}, progress_callback=observe)
        measured = await client.call_tool("measure", {"thing": "table"})
        rules = await client.read_resource("workshop://rules")
        plan = await client.get_prompt("plan", {"thing": "shelf"})
    assert getattr(built.content[0], "text", None) == "One box of oak, ready to carry home."
    assert reports == [
        (number, 8, f"{step} the box")
        for number, step in enumerate(
            ("measuring", "sawing", "planing", "drilling", "gluing", "clamping", "sanding", "oiling"), start=1
        )
    ]
    assert measured.structured_content == {"thing": "table", "square_metres": 3.5}
    assert getattr(rules.contents[0], "text", "").startswith("Measure twice")
    assert getattr(plan.messages[0].content, "text", "").startswith("Plan a shelf of oak")
