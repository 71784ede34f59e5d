"""Every kind of Problem of management. SPEC §problems.

Problem
├── requests      ActionUnknown, ActionRequired, ParameterRequired, ParameterInvalid, WorkspaceRequired, …
├── definitions   DefinitionInvalid, ReferenceMissing, ReferenceRefused, StdioRefused, AddressRefused
├── changes       ServerExists, ServerNotFound, ServerNotConnected, ServerBusy, ServerChanged
├── peers         ProtocolRevisionUnsupported, CapabilityRequired, ServerUnavailable, CatalogInvalid, …
└── the daemon    TooMany, StoreUnavailable, ShuttingDown, Internal

The kinds that only an operation can end in live in ``operation_problems``, those that a door answers with before
anything is asked of a workspace in ``door_problems``. The house test compares all three modules with the table of
SPEC §problems, both ways.
"""

from collections.abc import Sequence
from typing import Literal

from app.core.json_value import JsonObject
from app.core.problem import Problem, first_of, listed, shortened

Transport = Literal["stdio", "http"]
REVISION = "2026-07-28"


class ActionUnknown(Problem):
    """The kind of an action is not in the table of SPEC §actions."""

    code, title, status = "action-unknown", "Action unknown", 404

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"There is no action of kind '{kind[:128]}'. SPEC §actions lists the kinds.", kind=kind[:128]
        )


class ActionRequired(Problem):
    """A run carried neither an action nor a resume, and nothing waits on its thread."""

    code, title, status = "action-required", "Action required", 400

    def __init__(self, field: str = "forwardedProps.plurnk.action") -> None:
        super().__init__(f"Nothing to do: give an action object with a 'kind' in '{field}'.", field=field)


class ParameterRequired(Problem):
    """A parameter of an action is missing."""

    code, title, status = "parameter-required", "Parameter required", 400

    def __init__(self, field: str) -> None:
        super().__init__(f"The parameter '{shortened(field)}' is required.", field=shortened(field))


class ParameterInvalid(Problem):
    """A parameter of an action is unknown or of the wrong type; the value is never quoted."""

    code, title, status = "parameter-invalid", "Parameter invalid", 400

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(
            f"The parameter '{shortened(field)}' is invalid: {shortened(reason)}.", field=shortened(field)
        )


class WorkspaceRequired(Problem):
    """No workspace was named."""

    code, title, status = "workspace-required", "Workspace required", 400

    def __init__(self) -> None:
        super().__init__("Name the workspace in 'forwardedProps.plurnk.workspace'.", field="workspace")


class WorkspaceInvalid(Problem):
    """The workspace's name is not a name."""

    code, title, status = "workspace-invalid", "Workspace invalid", 400

    def __init__(self) -> None:
        super().__init__(
            "A workspace name has 1 to 128 of the characters A-Z a-z 0-9 . _ - and does not start with a dot.",
            field="workspace",
        )


class WorkspaceRefused(Problem):
    """The token is valid for another workspace only."""

    code, title, status = "workspace-refused", "Workspace refused", 403

    def __init__(self) -> None:
        super().__init__(
            "This token is valid for another workspace. Use that workspace's own or the operator's token."
        )


class DefinitionInvalid(Problem):
    """A server definition breaks the schema; lists every fault by JSON pointer, without values."""

    code, title, status = "definition-invalid", "Server definition invalid", 400

    def __init__(self, errors: Sequence[tuple[str, str]], *, server: str | None = None) -> None:
        whom = f"of server '{server}' " if server else ""
        first = first_of(errors)
        super().__init__(f"The definition {whom}is invalid: {first}.", server=server, errors=listed(errors))
        self.errors = tuple(errors)


class ReferenceMissing(Problem):
    """A referenced environment variable is not set (or empty, in a credential field)."""

    code, title, status = "reference-missing", "Environment reference missing", 400

    def __init__(self, *, server: str, variable: str, field: str) -> None:
        variable, field = shortened(variable), shortened(field)
        super().__init__(
            f"Server '{server}' references the variable '{variable}' in '{field}', and the daemon's environment has no"
            " value for it. Set it where the daemon starts, then try again.",
            server=server,
            variable=variable,
            field=field,
        )


class ReferenceRefused(Problem):
    """The operator's settings forbid referencing this variable."""

    code, title, status = "reference-refused", "Environment reference refused", 403

    def __init__(self, *, server: str, variable: str, field: str) -> None:
        variable, field = shortened(variable), shortened(field)
        super().__init__(
            f"Server '{server}' references the variable '{variable}' in '{field}', which PLURNK_REFERENCES does not"
            " allow. Ask the operator.",
            server=server,
            variable=variable,
            field=field,
        )


class StdioRefused(Problem):
    """The operator's settings forbid starting this process."""

    code, title, status = "stdio-refused", "Process refused", 403

    def __init__(self, *, server: str, setting: str, reason: str) -> None:
        super().__init__(
            f"Server '{server}' may not be started: {reason}. {setting} decides; ask the operator.",
            server=server,
            setting=setting,
        )


class AddressRefused(Problem):
    """The operator's settings forbid connecting to this address."""

    code, title, status = "address-refused", "Address refused", 403

    def __init__(self, *, server: str, setting: str = "PLURNK_HTTP_HOSTS") -> None:
        super().__init__(
            f"The address of server '{server}' is not one that {setting} allows. Ask the operator.",
            server=server,
            setting=setting,
        )


class ServerExists(Problem):
    """Attach of a name that is effective already."""

    code, title, status = "server-exists", "Server exists", 409

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The workspace already has a server '{server}'. Use workspace.mcp.replace to change it.",
            server=server,
        )


class ServerNotFound(Problem):
    """The workspace has no such server."""

    code, title, status = "server-not-found", "Server not found", 404

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The workspace has no server '{server}'. workspace.mcp.list shows what it has.", server=server
        )


class ServerNotConnected(Problem):
    """The server is effective and has no connection that can serve."""

    code, title, status, retryable = "server-not-connected", "Server not connected", 409, True

    def __init__(self, server: str, *, cause: JsonObject | None = None) -> None:
        because = f" Cause: {cause['detail']}" if cause and "detail" in cause else ""
        super().__init__(
            f"Server '{server}' is not connected; nothing was sent. Try again, or use"
            f" workspace.mcp.reconnect.{because}",
            server=server,
            cause=cause,
        )


class ServerBusy(Problem):
    """The connection that would be retired owns active operations."""

    code, title, status, retryable = "server-busy", "Server busy", 409, True

    def __init__(self, server: str, *, operations: Sequence[str]) -> None:
        super().__init__(
            f"Server '{server}' has {len(operations)} active operation(s); nothing was changed. Wait for them or cancel"
            " them with workspace.mcp.cancel, then try again.",
            server=server,
            operations=list(operations),
        )


class ServerChanged(Problem):
    """The server was changed by somebody else meanwhile."""

    code, title, status, retryable = "server-changed", "Server changed", 409, True

    def __init__(self, server: str) -> None:
        super().__init__(
            f"Server '{server}' was changed meanwhile; this request did nothing. Look at it, then try again.",
            server=server,
        )


class ProtocolRevisionUnsupported(Problem):
    """The endpoint does not speak the one revision we accept."""

    code, title, status = "protocol-revision-unsupported", "MCP protocol revision unsupported", 502

    def __init__(
        self, server: str, transport: Transport, *, answered: str, revisions: Sequence[str] = ()
    ) -> None:
        way = "install a newer release" if transport == "stdio" else "ask its owner for a newer release"
        super().__init__(
            f"Server '{server}' did not offer revision {REVISION} through server/discover ({answered})."
            f" Upgrade or replace the legacy endpoint: {way}. Its owner has {REVISION} from an SDK: mcp 2 or fastmcp 4"
            " in Python, @modelcontextprotocol/server 2 through serveStdio or createMcpHandler in TypeScript.",
            server=server,
            transport=transport,
            requiredRevision=REVISION,
            requiredMethod="server/discover",
            supportedRevisions=list(revisions) or None,
        )


class CapabilityRequired(Problem):
    """The server demands a client capability that we do not have (-32021)."""

    code, title, status = "capability-required", "Client capability required", 502

    def __init__(self, server: str) -> None:
        super().__init__(
            f"Server '{server}' demands a client capability that this host does not offer. Configure the server not to"
            " need it, or use another.",
            server=server,
        )


class ServerUnavailable(Problem):
    """The server cannot be started or reached, or ended."""

    code, title, status, retryable = "server-unavailable", "Server unavailable", 502, True

    def __init__(
        self,
        server: str,
        transport: Transport,
        reason: str,
        *,
        field: str | None = None,
        http_status: int | None = None,
        exit_status: int | None = None,
        signal: str | None = None,
        stderr: str | None = None,
    ) -> None:
        super().__init__(
            f"Server '{server}' is unavailable over {transport}: {reason}. Check that it runs, then try again.",
            server=server,
            transport=transport,
            field=field,
            httpStatus=http_status,
            exitStatus=exit_status,
            signal=signal,
            stderr=stderr,
        )


class CatalogInvalid(Problem):
    """What the server lists cannot be published; nothing of it was."""

    code, title, status = "catalog-invalid", "Catalog invalid", 502

    def __init__(self, server: str, reason: str, detail: str, *, names: Sequence[str] = ()) -> None:
        super().__init__(
            f"The catalog of server '{server}' cannot be used: {detail}.",
            server=server,
            reason=reason,
            names=list(names) or None,
        )


class AuthorizationRefused(Problem):
    """The server demands an authorization that the definition has no way to give, or refuses what it gives."""

    code, title, status = "authorization-refused", "Authorization refused", 502

    def __init__(self, server: str, reason: str, *, http_status: int | None = None) -> None:
        super().__init__(
            f"Server '{server}' refused the connection: {reason}.", server=server, httpStatus=http_status
        )


class TooMany(Problem):
    """A limit of the operator is reached; nothing was started."""

    code, title, status, retryable = "too-many", "Too many", 429, True

    def __init__(self, what: str, *, limit: int, setting: str) -> None:
        super().__init__(
            f"The limit of {limit} {what} is reached. Try again later, or ask the operator to raise {setting}.",
            limit=limit,
            setting=setting,
        )


class StoreUnavailable(Problem):
    """The database could not be read or written; nothing was changed."""

    code, title, status, retryable = "store-unavailable", "Store unavailable", 503, True

    def __init__(self, reason: str) -> None:
        super().__init__(f"The database is unavailable ({reason}); nothing was changed. Try again later.")


class ShuttingDown(Problem):
    """The daemon is going down: it starts nothing, and what was begun is cut off."""

    code, title, status, retryable = "shutting-down", "Shutting down", 503, True

    def __init__(self, *, was_begun: bool = False) -> None:
        what = " and did not wait for the end of this" if was_begun else "; nothing was started"
        super().__init__(f"The daemon is shutting down{what}. Try again when it is back.")


class Internal(Problem):
    """A bug of ours; the log has the rest under the same trace id."""

    code, title, status = "internal", "Internal error", 500

    def __init__(self, trace: str) -> None:
        super().__init__(
            f"The daemon failed. Its log has the rest under trace {trace}; please report it.", trace=trace
        )
