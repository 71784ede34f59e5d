"""subscriptions.py: the tasks among what is watched, each told to who watches it and to nobody else."""

import anyio
import pytest

from app.connections.subscription_filter import Filter, TaskChanged
from app.core.json_value import JsonObject
from tests.connections.test_subscriptions import TOOLS, house, terms
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("watch")


async def test_a_task_is_told_to_who_watches_it_until_it_is_forgotten() -> None:
    async with house() as home:
        await home.start({})
        news: list[JsonObject] = []
        home.watch.watch_task("t1", news.append)
        listen = await home.has(1)
        assert listen.asked == Filter(tasks=frozenset({"t1"}))
        listen.tell(TaskChanged("t1", {"taskId": "t1", "status": "working"}))
        listen.tell(TaskChanged("t2", {"taskId": "t2"}))
        assert news == [{"taskId": "t1", "status": "working"}]
        home.watch.forget_task("t1")
        home.watch.forget_task("t1")
        await eventually(lambda: not home.has_task)
        assert (listen.is_cancelled, home.open, home.watch.is_live) == (True, 0, False)
        home.watch.watch_task("t3", news.append)
        await home.has(2)
        assert home.watch.granted.tasks == {"t3"}


@pytest.mark.parametrize("capabilities", [{}, TOOLS])
async def test_a_task_that_is_over_before_its_stream_opens_costs_none(capabilities: JsonObject) -> None:
    async with house(terms(settling=0.3)) as home:
        await home.start(capabilities)
        before = len(home.listens)
        home.watch.watch_task("t1", home.heard.append)
        await anyio.wait_all_tasks_blocked()
        home.watch.forget_task("t1")
        await anyio.sleep(0.4)
        await anyio.wait_all_tasks_blocked()
        assert (len(home.listens), home.open, home.has_task) == (before, before, bool(before))
