"""cache.py: what is kept, where, how long and how much of it; held against a simple model."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typing_extensions import override

from app.connections.cache import SHARE_MAX, Cache, Places, Question

URL_A, URL_B = b"url-a", b"url-b"


@dataclass
class Hand:
    """A clock that stands until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class House:
    hand: Hand = field(default_factory=Hand)
    entries_max: int = 3
    bytes_max: int = 400
    cache: Cache[str] = field(init=False)

    def __post_init__(self) -> None:
        self.cache = Cache(clock=self.hand, entries_max=self.entries_max, bytes_max=self.bytes_max)

    def put(
        self, places: Places, value: str, *, scope: str = "public", ttl_ms: int = 1000, size: int = 10
    ) -> bool:
        with self.cache.asking(places) as question:
            return self.cache.keep(question, value, size=size, control=(ttl_ms, scope))


def place(own: str = "w1", name: str = "tools/list", shared: bytes = URL_A) -> Places:
    return Places(own.encode() + shared, shared, name)


@pytest.mark.spec("watch")
def test_a_public_answer_serves_everybody_at_its_url_and_nobody_else() -> None:
    house = House()
    assert house.put(place("w1"), "x") is True
    assert house.cache.get(place("w2")) == "x"
    assert house.cache.get(place("w2", shared=URL_B)) is None
    assert house.cache.get(place("w2", name="prompts/list")) is None


@pytest.mark.spec("watch")
@pytest.mark.spec("security")
def test_a_private_answer_serves_its_asker_alone() -> None:
    house = House()
    assert house.put(place("w1"), "x", scope="private") is False
    assert house.cache.get(place("w1")) == "x"
    assert house.cache.get(place("w2")) is None


@pytest.mark.spec("watch")
def test_an_answer_is_fresh_until_its_time_has_passed_since_it_was_asked_for() -> None:
    house = House()
    with house.cache.asking(place()) as question:
        house.hand.now += 0.4
        assert house.cache.keep(question, "x", size=1, control=(1000, "public"))
    house.hand.now += 0.59
    assert house.cache.get(place()) == "x"
    house.hand.now += 0.01
    assert house.cache.get(place()) is None
    assert (len(house.cache), house.cache.size) == (0, 0)


@pytest.mark.spec("watch")
def test_an_answer_that_took_longer_than_it_lives_is_not_kept() -> None:
    house = House()
    with house.cache.asking(place()) as question:
        house.hand.now += 1
        assert house.cache.keep(question, "x", size=1, control=(1000, "public")) is False
    assert house.cache.get(place()) is None


@pytest.mark.spec("watch")
@pytest.mark.parametrize("control", [(0, "public"), (1000, "private"), (1000, "public")])
def test_a_later_answer_replaces_an_earlier_one_wherever_either_lies(control: tuple[int, str]) -> None:
    for scope in ("public", "private"):
        house = House()
        house.put(place(), "old", scope=scope)
        house.put(place(), "new", scope=control[1], ttl_ms=control[0])
        assert house.cache.get(place()) == ("new" if control[0] else None)
        assert len(house.cache) == (1 if control[0] else 0)


@pytest.mark.spec("watch")
def test_an_earlier_question_answered_late_replaces_nothing() -> None:
    house = House()
    with house.cache.asking(place("w1")) as early:
        house.put(place("w2"), "later")
        assert house.cache.keep(early, "earlier", size=1, control=(5000, "private")) is False
    assert house.cache.get(place("w1")) == "later"


@pytest.mark.spec("watch")
def test_what_is_declared_stale_is_gone_and_what_is_under_way_is_not_kept() -> None:
    house = House()
    house.put(place(), "x")
    house.put(place(name="prompts/list"), "y")
    with house.cache.asking(place("w2")) as question:
        house.cache.invalidate(place("w1"))
        assert house.cache.get(place("w1")) is None
        assert house.cache.keep(question, "before", size=1, control=(1000, "public")) is False
    assert house.cache.get(place("w2")) is None
    assert house.cache.get(place(name="prompts/list")) == "y"


@pytest.mark.spec("watch")
def test_all_of_an_asker_can_be_forgotten() -> None:
    house = House()
    mine, other = place("w1"), place("w2", name="b")
    house.put(mine, "x", scope="private")
    house.put(other, "y", scope="private")
    with house.cache.asking(mine) as question:
        house.cache.forget(mine.own)
        assert question.is_void
    assert house.cache.get(mine) is None
    assert house.cache.get(other) == "y"


@pytest.mark.spec("limits")
def test_the_least_recently_used_goes_first_by_number_and_by_bytes() -> None:
    house = House()
    for name in "abc":
        house.put(place(name=name), name)
    assert house.cache.get(place(name="a")) == "a"
    house.put(place(name="d"), "d")
    assert [house.cache.get(place(name=name)) for name in "abcd"] == ["a", None, "c", "d"]
    house = House(entries_max=100)
    for name in "abcde":
        house.put(place(name=name), name, size=100)
    assert [house.cache.get(place(name=name)) for name in "abcde"] == [None, "b", "c", "d", "e"]
    assert house.cache.size == 400


@pytest.mark.spec("limits")
def test_one_answer_takes_only_a_part_of_all_but_is_told_to_be_public() -> None:
    house = House()
    house.put(place(name="a"), "a")
    assert house.put(place(name="b"), "b", size=400 // SHARE_MAX + 1) is True
    assert house.cache.get(place(name="b")) is None
    assert house.cache.get(place(name="a")) == "a"


WORKSPACES = st.sampled_from(["w1", "w2", "w3"])
NAMES = st.sampled_from(["tools/list", "prompts/list"])
URLS = st.sampled_from([URL_A, URL_B])


class CacheModel(RuleBasedStateMachine):
    """Answers are numbered by their question; the model keeps every one and says who may have which now."""

    def __init__(self) -> None:
        super().__init__()
        self.hand = Hand()
        self.cache: Cache[int] = Cache(clock=self.hand, entries_max=100, bytes_max=4000)
        self.open: list[tuple[Question, AbstractContextManager[Question]]] = []
        self.answers: dict[int, tuple[Places, str, float]] = {}
        self.gone: set[int] = set()
        self.latest: dict[tuple[bytes, str, bytes], int] = {}

    @rule(workspace=WORKSPACES, name=NAMES, url=URLS)
    def ask(self, workspace: str, name: str, url: bytes) -> None:
        asking = self.cache.asking(place(workspace, name, url))
        self.open.append((asking.__enter__(), asking))

    @rule(
        data=st.data(), ttl_ms=st.sampled_from([0, 500, 5000]), scope=st.sampled_from(["public", "private"])
    )
    def answer(self, data: st.DataObject, ttl_ms: int, scope: str) -> None:
        if not self.open:
            return
        question, asking = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        self.cache.keep(question, question.number, size=1, control=(ttl_ms, scope))
        asking.__exit__(None, None, None)
        if not question.is_void and ttl_ms:
            self.answers[question.number] = (question.places, scope, question.asked_at + ttl_ms / 1000)

    @rule(workspace=WORKSPACES, name=NAMES, url=URLS)
    def invalidate(self, workspace: str, name: str, url: bytes) -> None:
        places = place(workspace, name, url)
        self.cache.invalidate(places)
        for number, (asked, scope, _) in self.answers.items():
            if asked.shared_key == places.shared_key and (scope == "public" or asked.own == places.own):
                self.gone.add(number)
        assert self.cache.get(places) is None
        for question, _ in self.open:
            assert question.is_void or question.places.shared_key != places.shared_key

    @rule(seconds=st.sampled_from([0.1, 0.5, 3.0]))
    def wait(self, seconds: float) -> None:
        self.hand.now += seconds

    @rule(workspace=WORKSPACES, name=NAMES, url=URLS)
    def get(self, workspace: str, name: str, url: bytes) -> None:
        places = place(workspace, name, url)
        number = self.cache.get(places)
        if number is None:
            return
        asked, scope, fresh_until = self.answers[number]
        assert number not in self.gone
        assert asked.shared_key == places.shared_key
        assert scope == "public" or asked.own == places.own
        assert self.hand.now < fresh_until

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.cache) == self.cache.size <= 2 * 3 * 2 + 4

    @override
    def teardown(self) -> None:
        for _, asking in self.open:
            asking.__exit__(None, None, None)
        assert self.cache._open == {}


TestCacheModel = CacheModel.TestCase
TestCacheModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
