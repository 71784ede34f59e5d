"""The subscription of one connection: one listen stream with the current filter, kept open. SPEC §watch.

MCP 2026-07-28 basic/patterns/subscriptions. ``Watch`` owns the stream; what a change means is its observer's.

- There is an owner task only while something is wanted: list changes and resources that the server offers, tasks.
- A new filter opens a new stream, waits for its acknowledgement and then closes the old one, so that nothing between
  the two is missed. Changes of the filter that come together cost one stream.
- A stream that ended, whoever ended it, is opened again after ever longer waits. What the server may have told
  meanwhile is made up for by one ``on_missed`` once a stream stands again.
- A filter of which the server grants nothing is not asked for again; a server that does not know the method is asked
  nothing more over this transport.
- Each open stream has one of the daemon's places. Where none is free nothing opens, and the oldest waits for one first.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

import anyio
import structlog
from anyio.abc import TaskGroup

from app.concurrency import Latch
from app.connections.classify import METHOD_NOT_FOUND
from app.connections.recovery import Attempts, Backoff
from app.connections.subscription_filter import (
    Acknowledged,
    Filter,
    ListChanged,
    News,
    ResourceUpdated,
    TaskChanged,
    offered_lists,
    offers_resource_updates,
)
from app.connections.transport import Transport
from app.core.answers import Answer, RemoteError, RequestFault
from app.core.json_value import JsonObject

log = structlog.get_logger(__name__)

LISTENS_MAX: Final = 1000

OnTask: TypeAlias = Callable[[JsonObject], None]
"""Takes the params of one ``notifications/tasks``, without awaiting."""


def _places() -> anyio.Semaphore:
    return anyio.Semaphore(LISTENS_MAX, max_value=LISTENS_MAX)


@dataclass(frozen=True, slots=True)
class WatchTerms:
    """How streams are kept; seconds. The same for all connections of a daemon, which share the places."""

    places: anyio.Semaphore = field(default_factory=_places)
    backoff: Backoff = field(default_factory=lambda: Backoff(healthy_after=30.0))
    """Proxies cut idle streams after a minute, which is health enough."""
    acknowledgement: float = 10.0
    """A stream that was not acknowledged by then has failed."""
    patience: float = 1.0
    """How long a preparation waits for the first acknowledgement before it lists."""
    settling: float = 0.25
    """From a change of the filter to the stream that replaces the open one, or is the first one with tasks."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Whom a watch tells, without awaiting."""

    on_list_changed: Callable[[str], None]
    """The lists of this server capability changed."""
    on_missed: Callable[[Filter], None]
    """A stream stands again: all that it grants may have changed meanwhile."""
    on_live: Callable[[], None]
    """``is_live`` changed."""


class Watch:
    """The subscription of one connection, over one transport after another."""

    def __init__(self, terms: WatchTerms, observer: Observer, *, server: str) -> None:
        self._terms = terms
        self._observer = observer
        self._server = server
        self._transport: Transport | None = None
        self._group: TaskGroup | None = None
        self._scope: anyio.CancelScope | None = None
        self._over = Latch()
        self._news = Latch()
        self._tried = Latch()
        self._offered = Filter()
        self._may_subscribe = False
        self._resources: frozenset[str] = frozenset()
        self._tasks: dict[str, OnTask] = {}
        self._stream: _Stream | None = None
        self._refused: Filter | None = None
        self._is_method_unknown = False
        self._has_missed = False
        self._was_live = False
        self.on_resource_updated: Callable[[str], None] = lambda _uri: None
        """Is called, without awaiting, where a resource changed that is watched, or a part of it."""

    # What is wanted, and what there is

    @property
    def granted(self) -> Filter:
        """What the server tells of now: nothing where no stream stands."""
        stream = self._stream if self._transport is not None else None
        return stream.granted if stream is not None and not stream.is_over else Filter()

    @property
    def is_live(self) -> bool:
        """Whether changes are watched."""
        return bool(self.granted)

    @property
    def wanted(self) -> Filter:
        """What is to be watched: of what others want, what the server offers."""
        if self._is_method_unknown:
            return Filter()
        resources = self._resources if self._may_subscribe else frozenset[str]()
        return Filter(self._offered.lists, resources, frozenset(self._tasks))

    def set_resources(self, uris: Iterable[str]) -> None:
        """Watch exactly these resources, where the server offers it; ``granted`` says since when and which."""
        self._resources = frozenset(uris)
        self._wake()

    def watch_task(self, task_id: str, on_task: OnTask) -> None:
        """Tell ``on_task`` how the task moves on, where the server grants it; its poller asks all the same."""
        self._tasks[task_id] = on_task
        self._wake()

    def forget_task(self, task_id: str) -> None:
        """Watch the task no more. Nothing happens where it is not watched."""
        if self._tasks.pop(task_id, None) is not None:
            self._wake()

    # Its life

    async def start(self, transport: Transport, capabilities: JsonObject, group: TaskGroup) -> None:
        """Watch over a fresh transport, with tasks in this group, and give the first stream a while to stand.

        Lists that are drained afterwards are what the stream began with: nothing falls between the two. Where it does
        not stand in time it goes on trying, and ``on_missed`` follows.
        """
        self._offered = Filter(lists=offered_lists(capabilities))
        self._may_subscribe = offers_resource_updates(capabilities)
        self._transport, self._group = transport, group
        self._refused, self._has_missed, self._tried = None, False, Latch()
        self._is_method_unknown = False
        if self.wanted:
            self._wake()
            with anyio.move_on_after(self._terms.patience):
                await self._tried.wait()
            self._has_missed = not self.is_live

    def stop(self) -> None:
        """Watch no more, without awaiting, until ``start``; what is wanted is kept."""
        self._transport = None
        if self._scope is not None:
            self._scope.cancel()

    async def stopped(self) -> None:
        """Stop, and return once nothing of it is left."""
        self.stop()
        if self._scope is not None:
            await self._over.wait()

    def _wake(self) -> None:
        """Have the owner look again, who is started where there is something to do."""
        self._look_again()
        if self._scope is None and self._group is not None and self._transport is not None and self.wanted:
            scope, over = anyio.CancelScope(), Latch()
            self._group.start_soon(self._own, self._transport, scope, over)
            # Not before: a group that is over raises, and nobody may wait for what never began.
            self._scope, self._over = scope, over

    def _look_again(self) -> None:
        self._news.set()

    async def _own(self, transport: Transport, scope: anyio.CancelScope, over: Latch) -> None:
        """Be the owner of the streams over one transport."""
        is_idle = False
        try:
            with scope:
                async with anyio.create_task_group() as streams:
                    await self._keep(transport, streams)
                    streams.cancel_scope.cancel()
                is_idle = True
        except Exception:
            # The border of the owner task: one server never takes its workspace down.
            log.exception("watch-failed", server=self._server)
        finally:
            self._stream, self._scope = None, None
            self._tried.set()
            over.set()
            self._tell_live()
            if is_idle:
                self._wake()  # for what was wanted while the owner was leaving

    async def _keep(self, transport: Transport, streams: TaskGroup) -> None:
        """Keep one stream with the wanted filter open while anything is wanted."""
        attempts = Attempts(self._terms.backoff)
        while self.wanted:
            self._news = Latch()
            if (stood_for := self._let_go_of_ended()) is not None:
                await anyio.sleep(attempts.delay_after(stood_for))
            elif self._is_satisfied():
                await self._news.wait()
            elif not await self._open(transport, streams):
                self._has_missed = True
                await anyio.sleep(attempts.delay_after(0.0))

    def _is_satisfied(self) -> bool:
        """Return whether no stream is to be opened now."""
        wanted = self.wanted
        return wanted == self._refused or (self._stream is not None and self._stream.asked == wanted)

    def _let_go_of_ended(self) -> float | None:
        """Return the seconds that a stream which is over stood, and let go of it; None where none is over."""
        stream = self._stream
        if stream is None or not stream.is_over:
            return None
        self._stream, self._has_missed = None, True
        self._tell_live()
        return anyio.current_time() - stream.stands_since

    async def _open(self, transport: Transport, streams: TaskGroup) -> bool:
        """Open a stream with the wanted filter and put it in the old one's place; return whether that is settled."""
        if self._stream is not None or self.wanted.tasks:  # the tasks of most calls are over soon
            await anyio.sleep(self._terms.settling)
            if not self.wanted or self._is_satisfied():
                return True
        await self._take_place()
        asked, old = self.wanted, self._stream
        if not asked:  # nothing is wanted any more
            self._terms.places.release()
            return True
        stream = _Stream(asked, self._hear, self._look_again)
        streams.start_soon(stream.run, transport, self._terms.places)
        with anyio.move_on_after(self._terms.acknowledgement):
            await stream.settled.wait()
        if not stream.granted:
            stream.scope.cancel()
            self._refused = asked if stream.is_refused else None
            self._is_method_unknown = stream.is_method_unknown and old is None
            self._tried.set()
            return stream.is_refused
        self._stream = stream
        if old is not None:
            old.scope.cancel()
        self._tried.set()
        if self._has_missed:
            self._has_missed = False
            self._observer.on_missed(stream.granted)
        self._tell_live()
        return True

    async def _take_place(self) -> None:
        """Have a place for one more stream; where none is free, the open stream gives its own up."""
        try:
            self._terms.places.acquire_nowait()
        except anyio.WouldBlock:
            if self._stream is not None:
                self._stream.give_place_up()
                self._stream, self._has_missed = None, True
                self._tell_live()
            else:
                self._tried.set()
                await self._terms.places.acquire()

    def _hear(self, news: ListChanged | ResourceUpdated | TaskChanged) -> None:
        """Tell whom it concerns."""
        if self._transport is None:
            return
        match news:
            case ListChanged(capability=capability):
                self._observer.on_list_changed(capability)
            case ResourceUpdated(uri=uri):
                self.on_resource_updated(uri)
            case TaskChanged(task_id=task_id, params=params):
                if (on_task := self._tasks.get(task_id)) is not None:
                    on_task(params)
            case _:
                assert_never(news)

    def _tell_live(self) -> None:
        if self.is_live is not self._was_live:
            self._was_live = self.is_live
            self._observer.on_live()


class _Stream:
    """One listen stream, from its request to its end."""

    def __init__(
        self,
        asked: Filter,
        hear: Callable[[ListChanged | ResourceUpdated | TaskChanged], None],
        on_end: Callable[[], None],
    ) -> None:
        self.asked = asked
        self.granted = Filter()
        """Nothing before the acknowledgement."""
        self.stands_since = 0.0
        self.settled = Latch()
        """Set once it was acknowledged or is over."""
        self.is_over = False
        self.is_refused = False
        """Whether the same filter will never be granted."""
        self.is_method_unknown = False
        self.scope = anyio.CancelScope()
        self._has_place = True
        self._hear = hear
        self._on_end = on_end

    async def run(self, transport: Transport, places: anyio.Semaphore) -> None:
        """Hold the stream open until it ends or its scope is cancelled; its place is free again afterwards."""
        try:
            with self.scope:
                self._note_end(await transport.listen(self.asked, self._take))
        except RequestFault as fault:
            log.debug("listen-lost", reason=fault.reason)
        finally:
            if self._has_place:
                places.release()
            self.is_over = True
            self.settled.set()
            self._on_end()

    def give_place_up(self) -> None:
        """End it and leave its place to another stream."""
        self._has_place = False
        self.scope.cancel()

    def _take(self, news: News) -> None:
        if isinstance(news, Acknowledged):
            self.granted = news.granted
            self.is_refused = not news.granted
            self.stands_since = anyio.current_time()
            self.settled.set()
        else:
            self._hear(news)

    def _note_end(self, answer: Answer) -> None:
        if isinstance(answer, RemoteError) and answer.code == METHOD_NOT_FOUND:
            self.is_refused = self.is_method_unknown = True
        log.debug("listen-ended", answer=type(answer).__name__)
