"""What an action is: a kind, its parameters, and what it does to a workspace. SPEC §actions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from app.core.audit import AuditTrail
from app.core.events import Interrupt, RunEvent
from app.core.json_value import JsonObject
from app.core.principal import Principal
from app.core.problem import Stage
from app.core.problems import ParameterInvalid, ParameterRequired
from app.core.telemetry import Telemetry
from app.core.value import value
from app.operations.board import Boards
from app.ports import Store
from app.settings import Settings
from app.workspaces.manager import WorkspaceManager
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Host:
    """What every action of the daemon acts on."""

    settings: Settings
    manager: WorkspaceManager
    boards: Boards
    store: Store
    telemetry: Telemetry = field(default_factory=Telemetry)


@value
class Run:
    """One action being performed for one caller."""

    host: Host
    principal: Principal
    workspace: Workspace
    observe: Callable[[RunEvent], None]
    thread_id: str | None = None
    """The AG-UI thread that asked, where one did."""
    trail: AuditTrail | None = None
    """What it leaves in the audit table, where it leaves anything."""


@value
class Done:
    """The action ended; ``result`` is what SPEC §actions lists for its kind."""

    result: JsonObject
    encoded: bytes | None = field(default=None, compare=False, repr=False)
    """The result as JSON, where it has been written already."""


@value
class Interrupted:
    """The operation waits for a person."""

    operation: str
    interrupts: tuple[Interrupt, ...]


ActionOutcome: TypeAlias = Done | Interrupted


UNKNOWN_MAX = 20
"""Unknown members of one object that are judged: each costs far more to report than to send."""


class Params(BaseModel):
    """Parameters of an action: a closed object that converts nothing. Fields carry their wire names."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, given: Any) -> Any:
        """Return the known members and the first few of the others, which refuse the object as well as all would."""
        fields = cls.__pydantic_fields__
        if not isinstance(given, dict) or len(given := cast("dict[str, Any]", given)) <= len(fields):
            return given
        unknown = islice((name for name in given if name not in fields), UNKNOWN_MAX)
        return {name: given[name] for name in (*(each for each in fields if each in given), *unknown)}


class NoParams(Params):
    """An action that takes nothing."""


ParamsT = TypeVar("ParamsT", bound=Params)


@dataclass(frozen=True, slots=True)
class Action(Generic[ParamsT]):
    """One row of the table of SPEC §actions."""

    kind: str
    params: type[ParamsT]
    run: Callable[[Run, ParamsT], Awaitable[ActionOutcome]]
    summary: str
    """One sentence for OpenAPI and the documents."""
    stage: Stage = Stage.MANAGEMENT
    is_audited: bool = False
    """Whether it changes what a workspace is, and so leaves a row in the audit table."""

    def parse(self, members: dict[str, Any]) -> ParamsT:
        """Return the parameters that the members of the action object besides ``kind`` are.

        Raises:
            ParameterRequired: one is missing.
            ParameterInvalid: one is unknown or of the wrong type.
        """
        try:
            return self.params.model_validate(members)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = ".".join(str(part) for part in fault["loc"])
            match fault["type"]:
                case "missing":
                    raise ParameterRequired(field) from None
                case "extra_forbidden":
                    raise ParameterInvalid(field, f"'{self.kind}' takes no such parameter") from None
                case _:
                    raise ParameterInvalid(
                        field, fault["msg"].lower().removeprefix("value error, ")
                    ) from None
