"""One renewal of a token at a time, shared by all who wait for it. SPEC §oauth.

It knows nothing of tokens: whoever waits looks at what there is afterwards. Who does not wait is not held up.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import structlog
from anyio.abc import TaskGroup

from app.core.problem import Problem

log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class _Flight:
    """A renewal under way."""

    over: anyio.Event = field(default_factory=anyio.Event)
    problem: Problem | None = None


class SharedRenewal:
    """The renewals of one authorization."""

    def __init__(self) -> None:
        self._flight: _Flight | None = None

    async def join(self, group: TaskGroup, renew: Callable[[], Awaitable[None]]) -> Problem | None:
        """Return once a renewal has ended, and its Problem where it has one: the running one, else a new one.

        It runs in a task of the group. Cancelling one who waits ends it for nobody, nor is a refresh token lost that
        was spent and whose successor is still to come.
        """
        flight = self._flight
        if flight is None:
            flight = _Flight()
            group.start_soon(self._fly, flight, renew)
            self._flight = (
                flight  # not before: a group that is over raises, and nobody may wait for such a flight
            )
        await flight.over.wait()
        return flight.problem

    async def _fly(self, flight: _Flight, renew: Callable[[], Awaitable[None]]) -> None:
        try:
            await renew()
        except Problem as problem:
            flight.problem = problem.again()
        except Exception:
            # The border of the owner task: one server never takes its workspace down.
            log.exception("token-renewal-failed")
        finally:
            self._flight = None
            flight.over.set()
