"""What a soak came to, for people. SPEC §limits."""

from collections.abc import Iterator
from typing import Final

from tests.soak.memory import Memory
from tests.soak.remains import Remains
from tests.soak.soaking import Figures

ROWS: Final = ("tasks", "threads", "descriptors", "children", "blocks")


def figures_of(figures: Figures) -> str:
    """Return the figures as the table that ``docs/soak.md`` shows."""
    effort, counts = figures.effort, figures.counts
    signals = {name: counts[f"daemon {name}"] for name in ("SIGTERM", "SIGKILL")}
    lines = [
        f"seed {effort.seed}, {effort.seconds / 60:.1f} min, {effort.workspaces} workspaces, {effort.clients} clients",
        "",
        "| what | how often |",
        "|---|---|",
        f"| lives of the daemon | {figures.lives} (SIGTERM {signals['SIGTERM']}, SIGKILL {signals['SIGKILL']}) |",
        f"| servers killed / back | {counts['server killed']} / {counts['server back']} |",
        f"| calls, of them carried out | {counts['calls']}, {figures.carried_out} |",
        f"| answers of people | {counts['answers']} |",
        f"| clients that vanished in a stream | {counts['left']} |",
        *(
            f"| {name} | {count} |"
            for name, count in sorted(counts.items())
            if name.startswith(("change ", "call "))
        ),
        "",
        "| held by nobody | before | after |",
        "|---|---|---|",
        *(f"| {row} | {_held(figures.before, row)} | {_held(figures.after, row)} |" for row in ROWS),
        "",
        *_memory(figures.memory),
    ]
    return "\n".join(lines)


def _memory(memory: Memory) -> list[str]:
    shown = memory.at_intervals(10)
    since = memory.judged[0][0] / 60 if memory.judged else 0.0
    return [
        "| minute of the long life | " + " | ".join(f"{seconds / 60:.1f}" for seconds, _, _ in shown) + " |",
        "|---|" + "---|" * len(shown),
        "| MiB | " + " | ".join(f"{mib:.1f}" for _, mib, _ in shown) + " |",
        "| connections | " + " | ".join(f"{connections:.0f}" for _, _, connections in shown) + " |",
        "",
        f"from minute {since:.1f} on {memory.growth:+.2f} MiB a minute, of {memory.growth_allowed:.1f} that may be",
    ]


def _held(remains: Remains, row: str) -> int:
    held = getattr(remains, row)
    return len(held) if isinstance(held, tuple) else held


def faults(group: BaseExceptionGroup) -> Iterator[BaseException]:
    """Give what stands at the leaves of a group."""
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from faults(each)
        else:
            yield each
