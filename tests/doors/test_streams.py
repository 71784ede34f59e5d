"""Requests in flight: noticed disconnects, counted streams, the end at shutdown."""

from contextlib import ExitStack

import anyio
import pytest

from app.core.problems import ShuttingDown, TooMany
from app.doors.asgi import Message
from app.doors.presence import Presence
from app.doors.streams import Attention, Ending, OpenStreams


class Client:
    """Is there until it leaves."""

    def __init__(self) -> None:
        self.listened = anyio.Event()
        self.left = anyio.Event()

    async def receive(self) -> Message:
        self.listened.set()
        await self.left.wait()
        return {"type": "http.disconnect"}


async def never() -> None:
    await anyio.sleep_forever()


@pytest.mark.spec("agui")
async def test_work_is_cancelled_when_the_client_leaves() -> None:
    streams, client, attended = OpenStreams(limit=1), Client(), list[Attention]()
    async with streams.running(), anyio.create_task_group() as group:

        async def request() -> None:
            with streams.attend(client.receive) as attention:
                attended.append(attention)
                with attention.work():
                    await never()

        group.start_soon(request)
        with anyio.fail_after(5):
            await client.listened.wait()
            client.left.set()
    assert attended[0].ending is Ending.CLIENT_GONE


async def test_what_the_work_shields_completes_although_the_client_left() -> None:
    streams, client, committed = OpenStreams(limit=1), Client(), False
    async with streams.running():
        with streams.attend(client.receive) as attention, attention.work():
            with anyio.CancelScope(shield=True), anyio.fail_after(5):
                await client.listened.wait()
                client.left.set()
                await anyio.wait_all_tasks_blocked()
                committed = True
            await never()
    assert committed
    assert attention.ending is Ending.CLIENT_GONE


async def test_a_short_request_costs_no_companion() -> None:
    streams, client, began = OpenStreams(limit=1), Client(), anyio.Event()

    async def companion() -> None:
        began.set()

    async with streams.running():
        with streams.attend(client.receive) as attention:
            attention.beside(companion)
            with attention.work():
                pass
        await anyio.sleep(0.05)
    assert not began.is_set()
    assert not client.listened.is_set()
    assert attention.ending is None


def test_a_request_among_many_may_take_longer_before_it_costs_a_companion() -> None:
    streams = OpenStreams(limit=1)
    patience = [streams.patience_s]
    with ExitStack() as attended:
        for number in (1, 31, 968):
            for _ in range(number):
                attended.enter_context(streams.attend(Client().receive))
            patience.append(streams.patience_s)
    assert patience == [0, pytest.approx(0.001), pytest.approx(0.032), 0.2]


async def test_companions_of_one_request_do_not_touch_another() -> None:
    streams, client, other = OpenStreams(limit=1), Client(), Client()

    async def failing() -> None:
        raise RuntimeError("a bug")

    async with streams.running():
        with streams.attend(client.receive) as attention, streams.attend(other.receive) as untouched:
            attention.beside(failing)
            with attention.work(), untouched.work(), anyio.fail_after(5):
                await client.listened.wait()
                await other.listened.wait()
    assert (attention.ending, untouched.ending) == (None, None)


async def test_an_exception_of_the_work_is_the_requests_own() -> None:
    streams = OpenStreams(limit=1)
    async with streams.running():
        with (
            pytest.raises(ValueError, match="own"),
            streams.attend(Client().receive) as attention,
            attention.work(),
        ):
            raise ValueError("own")


@pytest.mark.spec("limits")
async def test_streams_are_counted_and_the_one_too_many_is_refused() -> None:
    streams = OpenStreams(limit=2)
    with ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(streams.stream())
        with pytest.raises(TooMany) as raised, streams.stream():
            pass
    assert raised.value.facts == {"limit": 2, "setting": "PLURNK_MAX_STREAMS"}
    with streams.stream():
        pass


@pytest.mark.spec("shutdown")
async def test_the_end_stops_all_work_and_waits_until_each_has_said_so() -> None:
    streams, said = OpenStreams(limit=9), list[Ending | None]()

    async def request(begun: anyio.Event) -> None:
        with streams.attend(Client().receive) as attention:
            with attention.work():
                begun.set()
                await never()
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            said.append(attention.ending)

    async with streams.running(), anyio.create_task_group() as group:
        for _ in range(3):
            begun = anyio.Event()
            group.start_soon(request, begun)
            await begun.wait()
        assert not streams.is_ending
        await streams.end_all(within_s=5)
        assert said == [Ending.SHUTDOWN] * 3
        assert streams.is_ending
        with pytest.raises(ShuttingDown), streams.attend(Client().receive):
            pass


@pytest.mark.spec("shutdown")
async def test_the_end_does_not_wait_for_ever_for_a_client_that_reads_nothing() -> None:
    streams = OpenStreams(limit=9)
    async with streams.running(), anyio.create_task_group() as group:
        begun = anyio.Event()

        async def request() -> None:
            with streams.attend(Client().receive):
                begun.set()
                await never()

        group.start_soon(request)
        await begun.wait()
        await streams.end_all(within_s=0.01)
        group.cancel_scope.cancel()


@pytest.mark.spec("shutdown")
async def test_the_end_of_nothing_is_at_once() -> None:
    streams = OpenStreams(limit=1)
    async with streams.running():
        await streams.end_all(within_s=60)


async def test_the_first_reason_stands() -> None:
    streams = OpenStreams(limit=1)
    async with streams.running():
        with streams.attend(Client().receive) as attention, attention.work():
            attention.stop(Ending.SHUTDOWN)
            attention.stop(Ending.CLIENT_GONE)
            await never()
    assert attention.ending is Ending.SHUTDOWN


@pytest.mark.spec("agui")
async def test_a_client_whose_end_is_told_needs_nobody_who_listens() -> None:
    client, presence, streams = Client(), Presence(), OpenStreams(limit=1)
    async with streams.running():
        with streams.attend(client.receive, presence) as attention:
            with attention.work():
                presence.end()
                await anyio.sleep_forever()
            assert attention.ending is Ending.CLIENT_GONE
        with streams.attend(client.receive, presence) as late, late.work():
            await anyio.sleep_forever()
        assert late.ending is Ending.CLIENT_GONE
