"""What a run leaves behind: a page of tables, a chart, and the short table that the README shows."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.blocks import Effort, Figure
from benchmarks.calls import ACROSS, FLOOR
from benchmarks.gateways import Gateway
from benchmarks.processes import IS_PINNED
from benchmarks.rows import Row
from benchmarks.verdicts import distances

VERSIONS = ("aiohttp", "fastapi", "mcp", "plurnk-mcpd", "uvicorn", "uvloop")
BAR, ROW, LABEL = 460, 24, 190


@dataclass(frozen=True)
class Circumstances:
    """Where and when a run was made, and how busy the machine was with other things."""

    load_before: float
    load_after: float
    effort: Effort
    peers: tuple[Gateway, ...] = ()

    @property
    def lines(self) -> Iterator[str]:
        """What a reader must know to believe the figures."""
        used = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
        cores = os.cpu_count()
        system = (
            f"{platform.system()}, {platform.machine()}, {cores} cores, Python {platform.python_version()}"
        )
        yield f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {system}"
        yield "- " + ", ".join([used, *(f"{peer.name} {peer.version}" for peer in self.peers)])
        yield f"- {self.effort.rounds} rounds of blocks of some {self.effort.block_s:g} s"
        yield f"- gateway pinned to one core, backend and load to another: {'yes' if IS_PINNED else 'no'}"
        busy = f"- load average {self.load_before:.1f} before, {self.load_after:.1f} after"
        # The run itself keeps about one core busy, and its own beginning counts for nothing.
        yield busy + (
            "; **the machine was busy with other work: latencies and rates are noise**"
            if self.load_before > 1
            else ""
        )


def write(
    directory: Path, figures: Sequence[Figure], rows: Sequence[Row], circumstances: Circumstances
) -> None:
    """Leave ``summary.md``, ``figures.md`` and ``calls.svg`` in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    about = "\n".join(circumstances.lines)
    summary = "\n".join(_bound_table(rows))
    (directory / "summary.md").write_text(f"{summary}\n")
    tables = (_figure_table(figures), _distance_table(figures), _other_table(rows))
    details = "\n\n".join(["Medians over the rounds.", *("\n".join(table) for table in tables)])
    (directory / "figures.md").write_text(f"# Figures of the last run\n\n{about}\n\n{summary}\n\n{details}\n")
    (directory / "calls.svg").write_text(chart(figures))
    sys.stdout.write(f"{about}\n\n{details}\n\n{summary}\n")


def _bound_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| figure | measured | bound | |"
    yield "|---|---|---|---|"
    for each in rows:
        if each.bound is not None:
            bound = f"{'≥' if each.is_floor else '≤'} {each.bound:g} {each.unit}".strip()
            yield f"| {each.name} | {each.value} | {bound} | {each.word} |"


def _other_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| what has no bound | measured |"
    yield "|---|---|"
    yield from (f"| {each.name} | {each.value} |" for each in rows if each.bound is None)


def _distance_table(figures: Sequence[Figure]) -> Iterator[str]:
    yield "| p50 of one call after the other | to the floor | to the floor across the cores |"
    yield "|---|---|---|"
    for target, *ratios in distances(figures):
        yield (
            f"| {target} | " + " | ".join("-" if each is None else f"{each:.1f} x" for each in ratios) + " |"
        )


def _figure_table(figures: Sequence[Figure]) -> Iterator[str]:
    yield "| scenario | in flight | target | CPU a call, ms | p50, ms | p99, ms | calls/s | backend requests a call |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in figures:
        yield (
            f"| {each.scenario} | {each.in_flight} | {each.target} | {each.cpu_ms:.3f} | {each.p50_ms:.2f}"
            f" | {each.p99_ms:.2f} | {each.rate:.0f} | {each.requests:.2f} |"
        )


def chart(figures: Sequence[Figure]) -> str:
    """Return bars of the processor time of one call at 32 in flight, the shortest first."""
    rows = sorted(
        (each.cpu_ms, each.target)
        for each in figures
        if (each.scenario, each.in_flight) in {("call", 32), ("AG-UI call", 32)}
        and each.target not in {FLOOR, ACROSS}
    )
    rows = list({target: (cpu, target) for cpu, target in rows}.values())
    longest = max((cpu for cpu, _ in rows), default=1.0)
    height = ROW * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + BAR + 90}" height="{height}" font-size="13">',
        "<style>text { font-family: sans-serif }</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="{ROW - 6}" font-weight="bold">Processor time of one tool call at 32 in flight, ms</text>',
    ]
    for number, (cpu, target) in enumerate(rows):
        top, width = ROW * (number + 1), BAR * cpu / longest
        colour = "#2f6f4f" if target.startswith("plurnk") else "#9aa5b1"
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 16}" text-anchor="end">{escape(target)}</text>',
            f'<rect x="{LABEL}" y="{top + 4}" width="{width:.1f}" height="{ROW - 8}" fill="{colour}"/>',
            f'<text x="{LABEL + width + 6:.1f}" y="{top + 16}">{cpu:.2f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
