"""What REST shows of the audit table. SPEC §agui, §observe."""

from urllib.parse import parse_qsl

from app.core.audit import AuditRow
from app.core.json_value import JsonObject
from app.core.names import parse_workspace_name
from app.core.problems import ParameterInvalid
from app.doors.asgi import Receive, Scope, Send
from app.doors.endpoint import host_of
from app.doors.security import principal_of
from app.rest.answers import send_json

ROWS = 100
ROWS_MAX = 1000


async def show_audit(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer the newest rows of the audit table, of one workspace or of all.

    Raises:
        WorkspaceRefused: the token is one workspace's.
        ParameterInvalid: the query asks for something else.
        WorkspaceInvalid: it names no workspace.
        StoreUnavailable: the database could not be read.
    """
    principal_of(scope).require_operator()
    limit, workspace = _asked(scope["query_string"])
    rows = await host_of(scope).store.audit_rows(limit=limit, workspace=workspace)
    await send_json(send, {"audit": [_row(each) for each in rows]})


def _asked(query: bytes) -> tuple[int, str | None]:
    """Return how many rows of which workspace a query asks for."""
    asked = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    limit, workspace = asked.pop("limit", str(ROWS)), asked.pop("workspace", None)
    if asked:
        raise ParameterInvalid(min(asked), "it is not known here")
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 5 and 1 <= int(limit) <= ROWS_MAX):
        raise ParameterInvalid("limit", f"it is a whole number from 1 to {ROWS_MAX}")
    return int(limit), None if workspace is None else parse_workspace_name(workspace)


def _row(row: AuditRow) -> JsonObject:
    at = row.at.isoformat().replace("+00:00", "Z")
    shown: JsonObject = {"at": at, "actor": row.actor, "workspace": row.workspace, "kind": row.kind}
    if row.server is not None:
        shown["server"] = row.server
    return {**shown, "outcome": row.outcome}
