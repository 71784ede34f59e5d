"""How often a large result is held at once, counted in allocated bytes, which no busy machine makes look worse.

The backend is another process, so that what is counted is the daemon's alone.
"""

import gc
import tracemalloc
from pathlib import Path

import anyio
import pytest

from app.doors import streams
from benchmarks import targets
from benchmarks.targets import CALL, http_definition
from tests.benchmarks.test_counts import ACTIONS, Json, Served, daemon_before_servers

MB = 1_000_000
CALL_OF_A_MB: Json = {**CALL, "arguments": {**CALL["arguments"], "size": MB}}
RUN: Json = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": []}


async def allocated(served: Served, path: str, body: Json) -> tuple[float, float]:
    """Return how much more was allocated at the worst moment of one request, and after it, in results."""
    for _ in range(3):  # Whatever is made once is made; what ended is kept by then.
        await served.answer(path, body)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        await served.answer(path, body)
        _, peak = tracemalloc.get_traced_memory()
        served.client.close()
        await anyio.sleep(0.05)  # The client has its last answer until it has gone.
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (peak - before) / MB, (after - before) / MB


@pytest.mark.spec("calls", "agui")
async def test_a_large_result_is_held_a_few_times_at_once_and_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ATTEND_AFTER_S", 60.0)
    run = {**RUN, "forwardedProps": {"plurnk": {"workspace": "bench", "action": CALL_OF_A_MB}}}
    with targets.backend() as backend:
        async with daemon_before_servers(tmp_path, 0) as served:
            definition = http_definition("s0", backend.servers(1)[0])
            await served.answer(ACTIONS, {"kind": "workspace.mcp.attach", "server": definition})
            rest, kept = await allocated(served, ACTIONS, CALL_OF_A_MB)
            agui, kept_by_agui = await allocated(served, "/", run)
    # Of these, nine are what orjson sets aside for a text of which every byte might need an escape.
    assert rest <= 15
    assert agui <= 16
    # The one that can be asked for again.
    assert kept <= 1.1
    assert kept_by_agui <= 1.1
