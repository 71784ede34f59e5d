"""Writing without blocking. SPEC §connection."""

import os
from collections.abc import Iterator

import anyio
import pytest

from app.connections.pipe_writer import HIGH_WATER, PipeWriter

pytestmark = [pytest.mark.spec("connection"), pytest.mark.anyio]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def take(descriptor: int, count: int) -> bytes:
    found = b""
    while len(found) < count:
        found += os.read(descriptor, count - len(found))
    return found


async def test_messages_arrive_whole_and_in_order_whatever_their_size(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = PipeWriter(writing, lambda: None)
    messages = [b"small\n", b"x" * 3_000_000 + b"\n", b"last\n"]
    for message in messages:
        writer.write(message)
    assert await anyio.to_thread.run_sync(take, reading, 3_000_012) == b"".join(messages)
    await writer.room()
    assert writer.waiting_bytes == 0
    writer.close()
    assert os.read(reading, 1) == b""


async def test_room_waits_for_the_reader(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = PipeWriter(writing, lambda: None)
    await writer.room()
    writer.write(b"x" * (HIGH_WATER + 200_000))
    with anyio.move_on_after(0.05) as scope:
        await writer.room()
    assert scope.cancelled_caught
    await anyio.to_thread.run_sync(take, reading, 200_000)
    with anyio.fail_after(5):
        await writer.room()
    assert 0 < writer.waiting_bytes <= HIGH_WATER
    writer.close()


async def test_a_message_is_taken_back_only_before_it_begins(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = PipeWriter(writing, lambda: None)
    first, second, third = (writer.write(letter * 100_000) for letter in (b"1", b"2", b"3"))
    assert (first.has_begun, second.has_begun) == (True, False)
    assert [writer.withdraw(message) for message in (first, second, second)] == [False, True, False]
    assert await anyio.to_thread.run_sync(take, reading, 200_000) == b"1" * 100_000 + b"3" * 100_000
    assert third.has_begun
    writer.close()


async def test_a_reader_that_left_is_noticed_once_and_nothing_begins_any_more(pipe: tuple[int, int]) -> None:
    own, writing = os.pipe()
    broken: list[bool] = []
    writer = PipeWriter(writing, lambda: broken.append(True))
    os.close(own)
    assert [writer.write(b"x").has_begun for _ in range(2)] == [False, False]
    assert (broken, writer.is_closed) == ([True], True)
    writer.close()


async def test_closing_frees_who_waits_for_room(pipe: tuple[int, int]) -> None:
    writer = PipeWriter(pipe[1], lambda: None)
    writer.write(b"x" * 1_000_000)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(writer.room)
            await anyio.lowlevel.checkpoint()
            writer.close()
    assert writer.waiting_bytes == 0
