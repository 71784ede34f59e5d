"""What an operation does next: a request, questions, a wait, or its end. Values only. SPEC §calls."""

from typing import TypeAlias

import orjson

from app.core.compact_bytes import compact
from app.core.interrupts import Question
from app.core.json_value import JsonObject
from app.core.problem import Problem
from app.core.value import value


@value
class Send:
    """The next step: send this request to the server and feed what arrives to ``arrived``."""

    method: str
    params: JsonObject
    input_schema: bytes | None = None


@value
class Ask:
    """The next step: put these questions, all at once, and feed all answers to ``answered``."""

    questions: tuple[Question, ...]


@value
class Authorize:
    """The next step: begin a sign-in that satisfies this challenge, and feed where a person signs in to ``begun``."""

    challenge: str | None


@value
class SignIn:
    """The next step: complete the sign-in with this callback, and say so to ``signed_in``, or ``refused``."""

    callback_url: str


@value
class Wait:
    """The next step: wait so long, then perform the step in it."""

    seconds: float
    then: Send


@value
class Completed:
    """The end: the result of the action."""

    result: JsonObject
    encoded: bytes
    """The result as JSON, written once for all who send or keep it."""

    @classmethod
    def of(cls, result: JsonObject) -> "Completed":
        """Return the end with this result."""
        return cls(result, compact(orjson.dumps(result)))


@value
class Failed:
    """The end: the Problem of the action."""

    problem: Problem


Ending: TypeAlias = Completed | Failed
Step: TypeAlias = Send | Ask | Authorize | SignIn | Wait | Ending
