"""Cancelling a coroutine at a chosen await, to walk through all of them. After httpcore's tests of cancellation."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CancelledAt(Generic[T]):
    """Awaits a coroutine and calls ``cancel`` at its n-th await, where it has so many (``was_reached``).

    That is when it begins to wait, or, ``is_late``, once what it waited for has come.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        step: int,
        cancel: Callable[[], object],
        *,
        is_late: bool = False,
    ) -> None:
        self.coroutine, self.step, self.cancel, self.is_late = coroutine, step, cancel, is_late
        self.was_reached = False

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self.coroutine.__await__()
        go_on: Callable[[], Any] = partial(next, steps)
        number = 0
        while True:
            try:
                awaited = go_on()
            except StopIteration as done:
                return done.value
            is_step, number = number == self.step, number + 1
            if is_step and not self.is_late:
                self._reach()
            try:
                yield awaited
            except BaseException as error:
                go_on = partial(steps.throw, error)
            else:
                go_on = partial(next, steps)
                if is_step and self.is_late:
                    self._reach()

    def _reach(self) -> None:
        self.was_reached = True
        self.cancel()
