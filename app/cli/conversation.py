"""The conversation about one action over AG-UI runs: events, questions, the result. SPEC §agui, §cli."""

import os
import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

from app.cli.client import DaemonClient
from app.cli.failures import AnswerLost, ProblemAnswer, RunCancelled
from app.cli.progress import CallProgress
from app.cli.questions import answer
from app.cli.session import Session
from app.cli.sign_in import Person
from app.core.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Answered:
    """The run ended with the action's result."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class Asked:
    """The run ended with questions."""

    interrupts: list[JsonObject]


def converse(
    client: DaemonClient,
    workspace: str,
    action: JsonObject,
    *,
    on_event: Callable[[], CallProgress],
    on_questions: Callable[[list[JsonObject]], list[JsonObject]],
) -> JsonObject:
    """Return the result of an action after answering whatever it asks, run after run.

    Raises:
        CommandFailure: it has none; ``on_questions`` may raise one too.
    """
    thread = f"cli-{uuid.uuid4()}"
    resume: list[JsonObject] | None = None
    while True:
        # Closed here, not by the collector, which would swallow a Ctrl-C that comes meanwhile.
        run = client.run(workspace, thread=thread, action=None if resume else action, resume=resume)
        with on_event() as progress, closing(run) as events:
            ending = ending_of(events, progress.take)
        if isinstance(ending, Answered):
            return ending.result
        resume = on_questions(ending.interrupts)


def ending_of(events: Iterable[JsonObject], observe: Callable[[JsonObject], None]) -> Answered | Asked:
    """Return how a run ended, after showing each event to ``observe``.

    Raises:
        ProblemAnswer: it ended with a Problem.
        RunCancelled: the daemon ended it.
        AnswerLost: the stream ended before the run did.
    """
    for event in events:
        observe(event)
        match event.get("type"):
            case "RUN_FINISHED":
                return _finished(event)
            case "RUN_ERROR":
                raise ProblemAnswer(_problem_of_error(event))
            case _:
                continue
    raise AnswerLost("The run ended without a result; its effect is unknown.", "Look into the daemon's log.")


def _finished(event: JsonObject) -> Answered | Asked:
    outcome, ending = event.get("outcome"), event.get("result")
    if isinstance(outcome, dict) and outcome.get("type") == "interrupt":
        interrupts = outcome.get("interrupts")
        return Asked(
            [entry for entry in interrupts if isinstance(entry, dict)] if isinstance(interrupts, list) else []
        )
    if isinstance(ending, dict):
        if isinstance(result := ending.get("result"), dict):
            return Answered(result)
        if isinstance(problem := ending.get("problem"), dict):
            raise ProblemAnswer(problem)
    raise RunCancelled(
        "The daemon cancelled the run, perhaps because it is shutting down.", "Try again later."
    )


def _problem_of_error(event: JsonObject) -> JsonObject:
    """Return the Problem behind a RUN_ERROR: the one it carries, or one made of its message and code."""
    metadata = event.get("metadata")
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    if isinstance(plurnk, dict) and isinstance(problem := plurnk.get("problem"), dict):
        return problem
    return {"title": "Run failed", "status": 500, "code": event.get("code"), "detail": event.get("message")}


def hold(
    session: Session, client: DaemonClient, action: JsonObject, *, title: str, accepts_proposals: bool = False
) -> JsonObject:
    """Return the result of an action, with a bar for its progress and the person at the terminal for its questions.

    Raises:
        CommandFailure: it has none, or a question stays open.
    """
    person = Person(session.screen, ask)
    return converse(
        client,
        session.workspace,
        action,
        on_event=lambda: CallProgress(session.screen.err, title),
        on_questions=lambda interrupts: answer(
            interrupts, workspace=session.workspace, accepts_proposals=accepts_proposals, person=person
        ),
    )


def ask(prompt: str) -> str:
    """Return the line that the person typed; the prompt goes to standard error, beside the question.

    Raises:
        EOFError: the person left.
    """
    sys.stderr.write(prompt)
    sys.stderr.flush()
    # Byte by byte, past every buffer: what is not read stays where ``select`` sees it.
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
    if not line:
        raise EOFError
    return line.decode(errors="replace")
