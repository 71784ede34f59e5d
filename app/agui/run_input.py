"""RunAgentInput as we read it: the protocol's own model judges it, what a management run needs is kept.

AG-UI 1.0 RunAgentInput; SPEC §agui. ``messages``, ``tools`` and ``context`` are for agents that talk to a
model: they are checked as far as the protocol asks (``messages`` not even that, so a role of tomorrow costs
nothing) and dropped.
"""

from dataclasses import dataclass
from typing import Annotated, Any, cast

import structlog
from ag_ui.core import Context, RunAgentInput, Tool
from ag_ui.core import ResumeEntry as WireResumeEntry
from pydantic import FailFast, TypeAdapter, ValidationError

from app.core.door_problems import InputMalformed
from app.core.interrupts import ResumeEntry
from app.core.json_value import Json, JsonObject

log = structlog.get_logger("plurnk.agui")

FAULTS_MAX = 20
"""Faults that one Problem names."""
NAMES_MAX = 10
ID_MAX = 1024
"""Characters of a thread's or run's id. It comes back in every run's events, and in the state that all clients
of the workspace are sent, so it must not fill them."""

_LISTS: dict[str, TypeAdapter[Any]] = {
    "tools": TypeAdapter(Annotated[list[Tool], FailFast()]),
    "context": TypeAdapter(Annotated[list[Context], FailFast()]),
    "resume": TypeAdapter(Annotated[list[WireResumeEntry], FailFast()]),
}
_NOTHING: JsonObject = {}


@dataclass(frozen=True, slots=True)
class RunInput:
    """What one run was asked for."""

    thread_id: str
    run_id: str
    parent_run_id: str | None
    state: JsonObject
    """The client's whole state; empty where it sent anything but an object."""
    workspace: Json
    """What ``forwardedProps.plurnk.workspace`` says, unchecked."""
    action: Json
    """None where there is none."""
    resume: tuple[ResumeEntry, ...]


def parse_run_input(body: Json) -> RunInput:
    """Return what the run was asked for; members that the protocol does not know are dropped with a warning.

    Raises:
        InputMalformed: a member that the protocol knows is missing, of the wrong type, or an id too long.
    """
    if not isinstance(body, dict):
        raise InputMalformed([("", "a RunAgentInput is an object")])
    given = _judged(body)
    _require_short_ids(given)
    props: Any = given.forwarded_props
    ours: Any = props.get("plurnk") if isinstance(props, dict) else None
    if not isinstance(ours, dict):
        ours = _NOTHING
    state: Any = given.state
    return RunInput(
        thread_id=given.thread_id,
        run_id=given.run_id,
        parent_run_id=given.parent_run_id,
        state=state if isinstance(state, dict) else {},
        workspace=ours.get("workspace"),
        action=ours.get("action"),
        resume=tuple(map(_entry, given.resume)) if given.resume else (),
    )


def _judged(body: JsonObject) -> RunAgentInput:
    if isinstance(messages := body.get("messages"), list) and messages:
        body = {**body, "messages": []}
    if not _LISTS.keys().isdisjoint(body):
        body = {**body, **_lists(body)}
    try:
        given = RunAgentInput.model_validate(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_MAX]
        raise InputMalformed([(_pointer(fault["loc"]), fault["msg"].lower()) for fault in faults]) from None
    if given.model_extra:
        names = [*given.model_extra][:NAMES_MAX]
        log.warning("run-input-members-ignored", members=[name[:64] for name in names])
    return given


def _lists(body: JsonObject) -> dict[str, Any]:
    """Return the lists, judged where they are right, else cut off after the first faults.

    Of a million faulty members all would be reported, which takes seconds.
    """
    lists: dict[str, Any] = {}
    for name, adapter in _LISTS.items():
        given = body.get(name)
        if isinstance(given, list):
            try:
                lists[name] = adapter.validate_python(given)
            except ValidationError as error:
                first = cast("int", error.errors(include_url=False, include_input=False)[0]["loc"][0])
                lists[name] = given[: first + FAULTS_MAX]
    return lists


def _require_short_ids(given: RunAgentInput) -> None:
    thread, run, parent = given.thread_id, given.run_id, given.parent_run_id or ""
    if len(thread) > ID_MAX or len(run) > ID_MAX or len(parent) > ID_MAX:
        ids = {"threadId": thread, "runId": run, "parentRunId": parent}
        long = [name for name, value in ids.items() if len(value) > ID_MAX]
        raise InputMalformed([(f"/{name}", f"must have at most {ID_MAX} characters") for name in long])


def _pointer(location: tuple[int | str, ...]) -> str:
    tokens = (str(part)[:64].replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{token}" for token in tokens)


def _entry(entry: WireResumeEntry) -> ResumeEntry:
    metadata: Any = entry.metadata
    return ResumeEntry(
        interrupt_id=entry.interrupt_id,
        status=entry.status,
        payload=cast("Json", entry.payload),
        metadata=metadata if isinstance(metadata, dict) else {},
    )
