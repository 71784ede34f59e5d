"""What REST says about the daemon: health, metrics, workspaces, schema, OpenAPI. SPEC §agui, §observe."""

from functools import cache

import orjson

from app.core.definitions import SCHEMA
from app.core.problems import ShuttingDown
from app.doors.asgi import Receive, Scope, Send, send_whole
from app.doors.endpoint import exposition_of, host_of, streams_of
from app.doors.security import principal_of
from app.rest.answers import send_json
from app.rest.openapi import document

SCHEMA_JSON = b"application/schema+json"
PROMETHEUS_TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_SCHEMA_BYTES = orjson.dumps(SCHEMA)


async def alive(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer at all."""
    await send_json(send, {"status": "alive"})


async def ready(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer that requests are taken up: the port opens after the store was migrated.

    Raises:
        ShuttingDown: nothing is taken up any more.
    """
    if streams_of(scope).is_ending:
        raise ShuttingDown
    await send_json(send, {"status": "ready"})


async def list_workspaces(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer the names of all workspaces that are stored or in use.

    Raises:
        WorkspaceRefused: the token is one workspace's.
        StoreUnavailable: the database could not be read.
    """
    principal_of(scope).require_operator()
    await send_json(send, {"workspaces": [*await host_of(scope).manager.names()]})


async def metrics(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer what the daemon counted, for Prometheus.

    Raises:
        WorkspaceRefused: the token is one workspace's.
    """
    principal_of(scope).require_operator()
    await send_whole(send, 200, exposition_of(scope), media_type=PROMETHEUS_TEXT)


async def definition_schema(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer the JSON Schema of a server definition."""
    await send_whole(send, 200, _SCHEMA_BYTES, media_type=SCHEMA_JSON)


async def openapi(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer the OpenAPI document of both doors."""
    await send_whole(send, 200, _openapi_bytes())


@cache
def _openapi_bytes() -> bytes:
    return orjson.dumps(document())
