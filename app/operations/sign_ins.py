"""SignIns: a person signs in in the middle of an operation, and the operation goes on. SPEC §oauth, §calls.

The question is an interrupt like any other, so whoever answers it drives the rest; it is listed as pending too, where
no change waits for a sign-in at the same server. Answering one question can serve others: the newest grant is used.
"""

import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from app.core.events import Interrupt
from app.core.oauth_problems import OAuthCallbackInvalid
from app.core.problem import Problem
from app.core.steps import Authorize, Step
from app.operations.open_operation import OpenOperation, PendingSignIn
from app.ports import Connection
from app.workspaces.pending import ParkedChange, ParkedQuestion, Pending


@dataclass(frozen=True, slots=True)
class CallbackRefused(Exception):
    """The callback used nothing up: the question is as open as before."""

    problem: Problem


class SignIns:
    """The sign-ins that operations of one workspace ask for."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._completed = WeakKeyDictionary[Connection, int]()
        """How many sign-ins each connection was granted something by."""

    async def begin(self, operation: OpenOperation, connection: Connection, demand: Authorize) -> Step:
        """Return the question for the callback of a new sign-in, or the operation's end where none can be begun."""
        machine = operation.machine
        try:
            attempt = await connection.begin_authorization(demand.challenge)
            # Nothing is awaited from here until the question is parked.
            self._pending.require_room(machine.work.server)
        except Problem as problem:
            return machine.refused(problem)
        operation.sign_in = PendingSignIn(attempt, connection, self._completed.get(connection, 0))
        return machine.begun(attempt.url)

    async def complete(self, operation: OpenOperation, callback_url: str) -> Step:
        """Return the refused request once the connection has what it was refused for.

        Raises:
            CallbackRefused: the callback used nothing up.
        """
        machine, sign_in = operation.machine, operation.sign_in
        if sign_in is None:
            raise ValueError("an operation that begun no sign-in has no callback")
        try:
            if self._completed.get(sign_in.connection, 0) == sign_in.seen:
                await sign_in.attempt.complete(callback_url)
                self._completed[sign_in.connection] = sign_in.seen + 1
        except OAuthCallbackInvalid as problem:
            if not problem.is_over:
                raise CallbackRefused(problem) from None
            return machine.refused(problem)
        except Problem as problem:
            return machine.refused(problem)
        self.settle(operation)
        return machine.signed_in()

    def park(self, operation: OpenOperation, interrupt: Interrupt) -> None:
        """Take the open question, and list it as pending where no change waits for a sign-in at its server."""
        sign_in, work = operation.sign_in, operation.machine.work
        if sign_in is None or sign_in.interrupt is not None:
            return
        sign_in.interrupt = interrupt
        if not self._is_taken(work.server):
            sign_in.parked = ParkedQuestion(work.server, work.kind, sign_in.attempt, interrupt.id)
            self._pending.park(sign_in.parked)

    def settle(self, operation: OpenOperation) -> None:
        """List the question no longer."""
        if operation.sign_in is not None and operation.sign_in.parked is not None:
            self._pending.settle(operation.sign_in.parked)

    def due(self, operation: OpenOperation) -> float:
        """Return when the callback comes too late, on the monotonic clock."""
        assert operation.sign_in is not None  # noqa: S101 only a sign-in that was begun is asked for
        return time.monotonic() + operation.sign_in.attempt.seconds_left

    def _is_taken(self, server: str) -> bool:
        return server in self._pending and isinstance(self._pending.find(server), ParkedChange)
