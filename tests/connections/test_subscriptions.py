"""subscriptions.py: one stream with the wanted filter, replaced by overlapping, opened again, in its place."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from app.connections.recovery import Backoff
from app.connections.subscription_filter import (
    Acknowledged,
    Filter,
    ListChanged,
    OnNews,
    ResourceUpdated,
)
from app.connections.subscriptions import Observer, Watch, WatchTerms
from app.connections.transport import Transport
from app.core.answers import Answer, AnswerLost, HttpRefusal, RemoteError, RequestFault, Result
from app.core.json_value import JsonObject
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("watch")

# The transport is the seam below this file, so that an end falls exactly where the test wants it; the wire stands
# behind test_stdio_listen.py and test_streamable_http_listen.py.

TOOLS: JsonObject = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
LISTS = Filter(lists=frozenset({"tools"}))
UNKNOWN = RemoteError(-32601, "no such method")
END = Result({"resultType": "complete"}, 1)


class Listen:
    """One stream as it reached the server."""

    def __init__(self, asked: Filter, on_news: OnNews) -> None:
        self.asked = asked
        self.tell = on_news
        self.is_cancelled = False
        self._end: Answer | RequestFault | None = None
        self._ended = anyio.Event()

    def acknowledge(self, granted: Filter | None = None) -> None:
        self.tell(Acknowledged(self.asked if granted is None else granted))

    def end(self, answer: Answer | RequestFault = END) -> None:
        self._end = answer
        self._ended.set()

    async def outcome(self) -> Answer:
        try:
            await self._ended.wait()
        except anyio.get_cancelled_exc_class():
            self.is_cancelled = True
            raise
        if isinstance(self._end, RequestFault):
            raise self._end
        assert self._end is not None
        return self._end


class House:
    """One watch over a transport whose every stream the test holds in its hands."""

    def __init__(self, terms: WatchTerms) -> None:
        self.listens: list[Listen] = []
        self.open = 0
        self.most = 0
        self.heard: list[Any] = []
        self.is_automatic = True
        self.watch = Watch(
            terms,
            Observer(
                on_list_changed=self.heard.append,
                on_missed=self.heard.append,
                on_live=lambda: self.heard.append(self.watch.is_live),
            ),
            server="p",
        )
        self.watch.on_resource_updated = self.heard.append
        self.group: TaskGroup

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        listen = Listen(asked, on_news)
        self.listens.append(listen)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if self.is_automatic:
                listen.acknowledge()
            return await listen.outcome()
        finally:
            self.open -= 1

    async def start(self, capabilities: JsonObject = TOOLS) -> None:
        await self.watch.start(cast("Transport", self), capabilities, self.group)

    async def has(self, count: int) -> Listen:
        """Return the newest of so many streams, once it was opened and the watch has seen to it."""
        await eventually(lambda: len(self.listens) >= count)
        await anyio.wait_all_tasks_blocked()
        return self.listens[count - 1]

    @property
    def has_task(self) -> bool:
        return self.watch._scope is not None


def terms(places: int = 10, **members: Any) -> WatchTerms:
    chosen: dict[str, Any] = {
        "places": anyio.Semaphore(places, max_value=places),
        "backoff": Backoff(first=0.0, ceiling=0.0),
        "patience": 0.05,
        "settling": 0.0,
        **members,
    }
    return WatchTerms(**chosen)


@asynccontextmanager
async def house(given: WatchTerms | None = None) -> AsyncGenerator[House]:
    async with houses(given or terms(), 1) as (home,):
        yield home


@asynccontextmanager
async def houses(given: WatchTerms, count: int) -> AsyncGenerator[list[House]]:
    """Run so many watches that share their places; nothing of them is left at the end."""
    homes = [House(given) for _ in range(count)]
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for home in homes:
                home.group = group
            yield homes
            for home in homes:
                await home.watch.stopped()
                assert (home.open, home.has_task, home.watch.is_live) == (0, False, False)
    assert given.places.value == given.places.max_value


async def test_the_first_stream_stands_when_start_returns_and_nothing_was_missed() -> None:
    async with house() as home:
        await home.start()
        assert (home.watch.is_live, home.watch.granted, home.heard) == (True, LISTS, [True])
        listen = home.listens[0]
        assert listen.asked == LISTS
        listen.tell(ListChanged("tools"))
        listen.tell(ResourceUpdated("a:part"))
        assert home.heard == [True, "tools", "a:part"]
        await home.watch.stopped()
        assert (listen.is_cancelled, home.heard[-1]) == (True, False)
        listen.tell(ListChanged("tools"))
        assert home.heard[-1] is False


@pytest.mark.parametrize("capabilities", [{}, {"tools": {}}, {"resources": {"subscribe": True}}])
async def test_a_server_that_offers_nothing_wanted_costs_no_task_and_no_request(
    capabilities: dict[str, Any],
) -> None:
    async with house() as home:
        await home.start(capabilities)
        assert (home.listens, home.has_task, home.watch.is_live) == ([], False, False)


async def test_a_late_acknowledgement_is_told_as_missed_changes() -> None:
    async with house() as home:
        home.is_automatic = False
        await home.start()
        assert (home.watch.is_live, len(home.listens)) == (False, 1)
        home.listens[0].acknowledge()
        await eventually(lambda: home.watch.is_live)
        assert home.heard == [LISTS, True]


async def test_without_acknowledgement_a_stream_has_failed_and_another_is_tried() -> None:
    async with house(terms(acknowledgement=0.02)) as home:
        home.is_automatic = False
        await home.start()
        await home.has(3)
        assert home.listens[0].is_cancelled
        assert (home.most, home.heard) == (1, [])


@pytest.mark.parametrize("end", [END, AnswerLost("cut"), HttpRefusal(503), RemoteError(-32603, "no")])
async def test_however_it_ended_it_is_opened_again_and_one_refresh_follows(end: Any) -> None:
    async with house() as home:
        await home.start()
        home.listens[0].end(end)
        await home.has(2)
        assert home.heard == [True, False, LISTS, True]
        assert home.watch.is_live


async def test_a_stream_that_closes_at_once_is_opened_ever_more_slowly() -> None:
    async with house(terms(backoff=Backoff(first=0.02, ceiling=60.0))) as home:
        listen = home.listen

        async def closing(asked: Filter, on_news: OnNews) -> Answer:
            with anyio.move_on_after(0.001):
                return await listen(asked, on_news)
            return END

        home.listen = closing
        started = anyio.current_time()
        await home.start()
        await anyio.sleep(0.6)
        took = anyio.current_time() - started
        assert 2 <= len(home.listens) <= 8 + took  # 0.02 doubling: 0.016, 0.032, ... at the least


async def test_news_before_a_stream_is_over_at_once_are_not_lost_and_each_gap_is_made_up_for() -> None:
    async with house() as home:
        home.is_automatic = False
        async with anyio.create_task_group() as group:
            group.start_soon(home.start)
            first = await home.has(1)
            first.acknowledge()
            first.end()
        await eventually(lambda: len(home.listens) == 2)
        home.listens[1].acknowledge()
        await eventually(lambda: home.watch.is_live)
        assert home.heard.count(LISTS) == 1


async def test_what_a_server_refuses_is_not_asked_again_before_the_filter_changes() -> None:
    async with house() as home:
        home.is_automatic = False
        async with anyio.create_task_group() as group:
            group.start_soon(home.start)
            (await home.has(1)).acknowledge(Filter())
        await anyio.sleep(0.05)
        assert (len(home.listens), home.open, home.watch.is_live) == (1, 0, False)
        home.is_automatic = True
        home.watch.set_resources(["a:"])
        await home.has(2)
        assert home.watch.granted == Filter(frozenset({"tools"}), frozenset({"a:"}))


async def test_a_server_that_does_not_know_the_method_is_asked_once_a_transport() -> None:
    async with house() as home:
        home.is_automatic = False
        async with anyio.create_task_group() as group:
            group.start_soon(home.start)
            (await home.has(1)).end(UNKNOWN)
        home.is_automatic = True
        home.watch.set_resources(["a:"])
        home.watch.watch_task("t", home.heard.append)
        await anyio.sleep(0.05)
        assert (len(home.listens), home.open, home.watch.is_live, home.has_task) == (1, 0, False, False)
        await home.watch.stopped()
        await home.start()
        await home.has(2)
        assert home.watch.is_live


async def test_a_partly_granted_filter_is_live_and_says_what_is_watched() -> None:
    async with house() as home:
        home.is_automatic = False
        home.watch.set_resources(["a:", "b:"])
        async with anyio.create_task_group() as group:
            group.start_soon(home.start)
            (await home.has(1)).acknowledge(Filter(resources=frozenset({"b:"})))
        assert home.watch.is_live
        assert home.watch.granted == Filter(resources=frozenset({"b:"}))
        await anyio.sleep(0.02)
        assert len(home.listens) == 1


# Changes of the filter


async def test_a_new_filter_overlaps_and_the_old_stream_tells_until_the_new_one_stands() -> None:
    async with house() as home:
        await home.start()
        home.is_automatic = False
        home.watch.set_resources(["a:"])
        new = await home.has(2)
        old = home.listens[0]
        assert (new.asked.resources, old.is_cancelled, home.open) == (frozenset({"a:"}), False, 2)
        old.tell(ListChanged("tools"))
        assert home.watch.granted == LISTS
        new.acknowledge()
        await eventually(lambda: old.is_cancelled)
        assert home.watch.granted == new.asked
        assert home.heard == [True, "tools"]


async def test_changes_that_come_together_cost_one_stream() -> None:
    async with house(terms(settling=0.05)) as home:
        await home.start()
        for number in range(100):
            home.watch.set_resources([f"a:{each}" for each in range(number)])
            home.watch.watch_task(f"t{number}", home.heard.append)
            await anyio.lowlevel.checkpoint()
        await home.has(2)
        await anyio.sleep(0.1)
        assert len(home.listens) == 2
        assert len(home.watch.granted.resources) == 99
        assert len(home.watch.granted.tasks) == 100


async def test_a_new_filter_that_fails_leaves_the_old_stream_in_its_place() -> None:
    async with house() as home:
        await home.start()
        home.is_automatic = False
        home.watch.set_resources(["a:"])
        (await home.has(2)).end(HttpRefusal(503))
        (await home.has(3)).end(UNKNOWN)
        await anyio.sleep(0.02)
        assert len(home.listens) == 3
        assert not home.listens[0].is_cancelled
        assert (home.watch.granted, home.open) == (LISTS, 1)


# Places


async def test_no_more_streams_are_open_than_there_are_places_and_a_free_one_is_taken() -> None:
    async with houses(terms(places=3), 10) as homes:
        for home in homes:
            await home.start()
        assert [home.watch.is_live for home in homes] == [True] * 3 + [False] * 7
        assert sum(len(home.listens) for home in homes) == 3
        await homes[0].watch.stopped()
        await eventually(lambda: homes[3].watch.is_live)
        assert sum(home.open for home in homes) == 3
        assert homes[3].heard == [LISTS, True]


async def test_without_a_second_place_the_old_stream_makes_room_and_the_gap_is_made_up_for() -> None:
    async with house(terms(places=1)) as home:
        await home.start()
        home.watch.set_resources(["a:"])
        listen = await home.has(2)
        assert home.listens[0].is_cancelled
        assert (home.open, home.watch.granted) == (1, listen.asked)
        assert home.heard == [True, False, listen.asked, True]


async def test_whoever_waits_for_a_place_leaves_nothing_when_it_is_stopped() -> None:
    async with houses(terms(places=1), 2) as homes:
        for home in homes:
            await home.start()
        await homes[1].watch.stopped()
        assert homes[1].listens == []


# Its life


async def test_after_a_loss_it_starts_again_over_another_transport_with_what_is_wanted() -> None:
    async with house() as home:
        home.watch.set_resources(["a:"])
        await home.start()
        home.listens[0].end(AnswerLost("the process ended"))
        home.watch.stop()
        assert not home.watch.is_live
        await home.watch.stopped()
        assert home.heard == [True, False]
        await home.start({"prompts": {"listChanged": True}})
        assert home.listens[-1].asked == Filter(frozenset({"prompts"}))
        assert home.heard == [True, False, True]


async def test_a_bug_ends_the_watch_until_the_filter_changes_and_nothing_else() -> None:
    async with house() as home:
        listen = home.listen

        async def broken(asked: Filter, on_news: OnNews) -> Answer:
            raise RuntimeError("a bug", asked, on_news)

        home.listen = broken
        await home.start()
        await eventually(lambda: not home.has_task)
        home.listen = listen
        home.watch.set_resources(["a:"])
        await home.has(1)
        assert home.watch.is_live


async def test_a_cancelled_group_ends_it_for_good() -> None:
    home = House(terms())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as home.group:
            await home.start()
            home.group.cancel_scope.cancel()
    assert (home.open, home.has_task) == (0, False)
    await home.watch.stopped()
