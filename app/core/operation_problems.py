"""Every kind of Problem that only an operation can end in. SPEC §problems, §calls."""

from collections.abc import Sequence

from app.core.json_value import Json
from app.core.problem import Outcome, Problem, Stage, first_of, listed

REMOTE_MESSAGE_MAX = 512
"""Characters of a peer's error message that are shown."""


class ToolNotFound(Problem):
    """The current snapshot has no such enabled tool."""

    code, title, status = "tool-not-found", "Tool not found", 404

    def __init__(self, server: str, tool: str) -> None:
        super().__init__(
            f"Server '{server}' has no enabled tool '{tool[:256]}'. workspace.mcp.tools lists them.",
            server=server,
            tool=tool[:256],
        )


class ResourceNotFound(Problem):
    """The server offers no resources, or says that it has no such resource."""

    code, title, status = "resource-not-found", "Resource not found", 404

    def __init__(self, server: str, *, outcome: Outcome = Outcome.NOT_SENT) -> None:
        super().__init__(
            f"Server '{server}' has no such resource. Read '{server}:///resources' for what it lists.",
            server=server,
        )
        self.outcome = outcome


class PromptNotFound(Problem):
    """The server offers no prompts."""

    code, title, status = "prompt-not-found", "Prompt not found", 404

    def __init__(self, server: str) -> None:
        super().__init__(
            f"Server '{server}' has no such prompt. Read '{server}:///prompts' for what it lists.",
            server=server,
        )


class ArgumentsInvalid(Problem):
    """The arguments break the tool's input schema; nothing was sent."""

    code, title, status = "arguments-invalid", "Arguments invalid", 400

    def __init__(self, server: str, tool: str, errors: Sequence[tuple[str, str]]) -> None:
        first = first_of(errors)
        super().__init__(
            f"The arguments for tool '{tool}' of server '{server}' are invalid, so nothing was sent: {first}.",
            server=server,
            tool=tool,
            errors=listed(errors),
        )


class RemoteErrorAnswered(Problem):
    """The peer answered with a JSON-RPC error or a refusing HTTP status; ``remote`` is bounded."""

    code, title, status = "remote-error", "Remote error", 502
    outcome = Outcome.REJECTED

    def __init__(
        self,
        server: str,
        *,
        rpc_code: int | None = None,
        message: str | None = None,
        data: Json = None,
        http_status: int | None = None,
    ) -> None:
        remote: dict[str, Json] = {}
        if rpc_code is not None:
            remote["code"] = rpc_code
        if message is not None:
            remote["message"] = message[:REMOTE_MESSAGE_MAX]
        if data is not None:
            remote["data"] = data
        if http_status is not None and rpc_code is None:
            remote["httpStatus"] = http_status
        said = f"JSON-RPC error {rpc_code}" if rpc_code is not None else f"HTTP status {http_status}"
        super().__init__(
            f"Server '{server}' answered with {said}. The fact 'remote' has what it said; change the request or ask"
            " the server's owner.",
            server=server,
            remote=remote,
        )


class ToolCallFailed(Problem):
    """The request was dispatched and its answer was lost; it is never sent again by us."""

    code, title, status = "tool-call-failed", "Answer lost", 502
    outcome = Outcome.UNKNOWN

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"The request to server '{server}' was sent and its answer was lost ({reason}), so its effect is unknown."
            " Check the effect before you send it again; the daemon does not.",
            server=server,
        )


class ToolResultInvalid(Problem):
    """The peer completed the operation with a result that cannot be used."""

    code, title, status = "tool-result-invalid", "Result invalid", 502
    outcome = Outcome.EXECUTED

    def __init__(self, server: str, reason: str, *, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(
            f"Server '{server}' completed the operation with a result that cannot be used: {reason}."
            " Its owner has to mend it.",
            server=server,
            errors=listed(errors) or None,
        )


class ResultTooLarge(Problem):
    """The result is over the limit."""

    code, title, status = "result-too-large", "Result too large", 502
    outcome = Outcome.EXECUTED

    def __init__(self, server: str | None, *, limit: int, setting: str | None) -> None:
        whose = (
            "The result" if server is None else f"Server '{server}' completed the operation, and its result"
        )
        raised = "" if setting is None else f", or ask the operator to raise {setting}"
        super().__init__(
            f"{whose} is larger than {limit} bytes. Ask for less{raised}.",
            server=server,
            limit=limit,
            setting=setting,
        )


class InputUnsupported(Problem):
    """The peer asks for an input that this host cannot give; nobody was asked."""

    code, title, status = "input-unsupported", "Input unsupported", 502
    outcome = Outcome.REJECTED

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"Server '{server}' asks for input that this host cannot give ({reason}); nobody was asked.",
            server=server,
        )


class InputRoundsExceeded(Problem):
    """The peer asks again after every answer; it is not answered for ever."""

    code, title, status = "input-rounds-exceeded", "Input rounds exceeded", 502
    outcome = Outcome.UNKNOWN

    def __init__(self, server: str, *, rounds: int) -> None:
        super().__init__(
            f"Server '{server}' asked for input more than {rounds} times for one operation, which was given up."
            " Ask the server's owner; what it did meanwhile is unknown.",
            server=server,
            rounds=rounds,
        )


class InterruptNotFound(Problem):
    """No such question is or was open in the workspace."""

    code, title, status = "interrupt-not-found", "Interrupt not found", 404

    def __init__(self, interrupt: str) -> None:
        super().__init__(
            "No such question is open in this workspace. Run without a resume to see the open ones.",
            interrupt=interrupt[:128],
        )


class InterruptExpired(Problem):
    """The question's time is over."""

    code, title, status = "interrupt-expired", "Interrupt expired", 410

    def __init__(self, interrupt: str) -> None:
        super().__init__(
            "The question has expired; its operation has ended. Call again.", interrupt=interrupt
        )


class InterruptConflict(Problem):
    """The question was answered before, differently."""

    code, title, status = "interrupt-conflict", "Interrupt conflict", 409

    def __init__(self, interrupt: str) -> None:
        super().__init__(
            "The question was answered before, differently; the first answer stands.", interrupt=interrupt
        )


class ResumeIncomplete(Problem):
    """A resume must cover exactly one operation and all its open questions; nothing was consumed."""

    code, title, status = "resume-incomplete", "Resume incomplete", 400

    def __init__(self, reason: str, *, missing: Sequence[str] = ()) -> None:
        super().__init__(
            f"The resume was not taken: {reason}. Answer every open question of one operation at once.",
            missing=list(missing) or None,
        )


class AnswerInvalid(Problem):
    """An answer breaks its question's schema; nothing was consumed, the question stays open."""

    code, title, status = "answer-invalid", "Answer invalid", 400

    def __init__(self, interrupt: str, errors: Sequence[tuple[str, str]]) -> None:
        first = first_of(errors)
        super().__init__(
            f"The answer does not fit the question, which stays open: {first}.",
            interrupt=interrupt,
            errors=listed(errors),
        )


class OperationNotFound(Problem):
    """No such operation runs, waits or was settled lately in the workspace."""

    code, title, status = "operation-not-found", "Operation not found", 404

    def __init__(self, operation: str) -> None:
        super().__init__(
            "No such operation runs, waits or was settled in the last ten minutes in this workspace.",
            operation=operation[:128],
        )


class OperationCancelled(Problem):
    """The operation was cancelled before it completed."""

    code, title, status = "operation-cancelled", "Operation cancelled", 409
    stage = Stage.OPERATION

    def __init__(self, operation: str, *, by: str, outcome: Outcome) -> None:
        super().__init__(
            "The operation was cancelled by its server. Check its effect before you call again."
            if by == "server"
            else f"The operation was cancelled by {by}; the peer was told to stop where it had begun.",
            operation=operation,
            by=by,
        )
        self.outcome = outcome


class OperationTimeout(Problem):
    """The operation did not end within its deadline; the peer was told to stop."""

    code, title, status = "operation-timeout", "Operation timed out", 504

    def __init__(self, server: str, *, timeout_ms: int, outcome: Outcome) -> None:
        super().__init__(
            f"The operation on server '{server}' did not end within {timeout_ms} ms (PLURNK_MCP_REQUEST_TIMEOUT); the"
            " peer was told to stop. Check its effect before you send it again.",
            server=server,
            timeoutMs=timeout_ms,
        )
        self.outcome = outcome
