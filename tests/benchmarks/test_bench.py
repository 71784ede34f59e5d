"""The bench runs from end to end with tiny counts, so that it cannot rot; it proves nothing about speed."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.__main__ import RESULTS, run
from benchmarks.blocks import Effort, Figure
from benchmarks.calls import FLOOR, OURS, SDK
from benchmarks.lifecycle import Extent
from benchmarks.plan import Plan
from benchmarks.processes import ROOT
from benchmarks.report import chart
from benchmarks.verdicts import verdicts

TINY = Plan(
    Effort(rounds=1, block_s=0.0, least=1),
    Extent(servers=2, starts=(2,), workspaces=4, idle_s=0.1, connect_timeout_ms=1000),
    in_flight=(1, 32),
    sizes=(100,),
    in_flight_over_tls=(1,),
    minutes=1,
    minute_s=0.1,
)


@pytest.mark.timeout(300)
async def test_a_tiny_run_measures_every_row_and_leaves_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run(tmp_path, TINY)
    assert capsys.readouterr().err == ""  # nothing was left out
    rows = (tmp_path / "summary.md").read_text()
    without_peers = [line for line in rows.splitlines() if "not measured" in line]
    assert all("mcp-hub" in line for line in without_peers)
    assert "| list, backend requests | 0.00 | ≤ 0 | met |" in rows
    assert "| attach over HTTP, backend requests, each after the other | 2.00 | ≤ 2 | met |" in rows
    assert "| 4 workspaces, one public server: list requests to the server | 1.00 | ≤ 1 | met |" in rows
    figures = (tmp_path / "figures.md").read_text()
    for start in ("call | 32", "call, TLS | 1", "call, 100 B, SSE | 8", "minute 1 of full load | 32"):
        assert f"| {start} | plurnk-mcpd |" in figures
    assert "| call | 32 | plurnk-mcpd, inside the process |" in figures
    assert (
        "| 4 workspaces, one server whose lists nobody may keep: list requests to the server | 4.00 |"
        in figures
    )
    assert "| SQLite, one attach: transactions | 1.00 |" in figures
    assert "| floor | 1.0 x |" in figures
    ET.parse(tmp_path / "calls.svg")  # noqa: S314 our own


def test_the_readme_shows_the_table_of_the_kept_run() -> None:
    _, _, after = (
        (ROOT / "README.md").read_text().partition("<!-- the table of benchmarks/results/summary.md -->\n")
    )
    table, _, _ = after.partition("<!-- end of the table -->")
    assert table.strip() == (RESULTS / "summary.md").read_text().strip()


def figure(target: str, cpu_ms: float, in_flight: int = 32, scenario: str = "call") -> Figure:
    return Figure(scenario, target, in_flight, cpu_ms, p50_ms=cpu_ms, p99_ms=6 * cpu_ms, rate=100, requests=1)


def test_a_verdict_is_the_ratio_against_its_bound() -> None:
    words = {
        each.name: (each.measured, each.word) for each in verdicts([figure(OURS, 0.4), figure(SDK, 1.0)])
    }
    assert words["CPU a call, REST, to the SDK's client, 32 in flight"] == (0.4, "met")
    assert words["CPU a call, REST, to mcp-hub, 32 in flight"] == (None, "not measured")
    assert words["p99 at 32 in flight, to its own p50"] == (pytest.approx(6.0), "NOT met")


def test_the_chart_has_one_bar_for_each_target_and_none_for_the_floor() -> None:
    drawn = chart([figure(OURS, 0.4), figure(FLOOR, 0.1), figure(SDK, 1.0), figure(OURS, 9, 1)])
    assert drawn.count("<rect") == 1 + 2
