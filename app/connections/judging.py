"""Judging a server's tools before they are published, without holding up anybody else. SPEC §prepare.

What is judged is ``core.policy``'s decision. Compiling a schema and writing canonical JSON cost up to a tenth of a
second a tool, and a catalog may hold ten thousand of them. Most are small, and the same again: listed anew, or by the
same server in another workspace; the last judgements of those are kept.
"""

import time
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import Final

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from app.core.catalog import Entry, Judgement
from app.core.policy import judge

TURN_S: Final = 0.01
"""Seconds of judging after which others have their turn."""
LARGE: Final = 64 * 1024
"""Bytes of an entry from which it is judged in a thread."""
SMALL: Final = 4 * 1024
"""Bytes of an entry up to which its judgement is kept."""
KEPT_MAX: Final = 1024
THREADS: Final = 2


class Judge:
    """Judges the tools of every server of a daemon by the same limits."""

    def __init__(self, *, max_schema_depth: int, max_schema_nodes: int) -> None:
        self._judge = partial(judge, max_schema_depth=max_schema_depth, max_schema_nodes=max_schema_nodes)
        self._kept = lru_cache(KEPT_MAX)(self._judge)
        self._threads = anyio.CapacityLimiter(THREADS)

    async def judged(
        self, tools: Collection[Entry], enabled: Collection[str] | None, *, is_http: bool
    ) -> Mapping[str, Judgement]:
        """Return the judgement of each enabled tool; None enables all.

        Cancelled, it leaves at most one tool to its thread.
        """
        wanted = None if enabled is None else frozenset(enabled)
        judged: dict[str, Judgement] = {}
        turn_ends = time.monotonic() + TURN_S
        for entry in tools:
            if wanted is not None and entry.name not in wanted:
                continue
            if len(entry.raw) <= SMALL:
                judged[entry.name] = self._kept(entry.raw, is_http=is_http)
            elif len(entry.raw) < LARGE:
                judged[entry.name] = self._judge(entry.raw, is_http=is_http)
            else:
                one = partial(self._judge, entry.raw, is_http=is_http)
                judged[entry.name] = await anyio.to_thread.run_sync(
                    one, abandon_on_cancel=True, limiter=self._threads
                )
            if time.monotonic() >= turn_ends:
                await checkpoint()
                turn_ends = time.monotonic() + TURN_S
        return judged
