"""The composition root: builds the adapters and the task tree, and the HTTP application over them. Sees everything."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from fastapi import FastAPI

from app.actions.action import Host
from app.agui.routes import ROUTES as AGUI_ROUTES
from app.configuration import Configuration
from app.connections.child_record import ChildRecord
from app.connections.connector import Connector
from app.connections.reaper import Reaper
from app.core.masking import Mask
from app.core.telemetry import PassingTracer, Telemetry, Tracer
from app.doors.application import build_application
from app.doors.gauges import gauges
from app.doors.streams import OpenStreams
from app.home import Home
from app.observe.export_settings import header_secrets
from app.observe.exposition import Exposition
from app.operations.board import Boards
from app.rest.routes import ROUTES as REST_ROUTES
from app.store.sql_store import open_store
from app.tokens import Tokens, operator_token
from app.workspaces.manager import WorkspaceManager


@dataclass(frozen=True, slots=True)
class Daemon:
    """Everything that runs behind the port."""

    app: FastAPI
    host: Host
    streams: OpenStreams
    """The registry of requests in flight."""
    connector: Connector
    tokens: Tokens

    async def end(self) -> None:
        """End every run, operation and connection, all attempted; nothing new is taken up meanwhile. SPEC §shutdown."""
        self.host.boards.shut_down()
        await self.streams.end_all()
        await self.host.boards.finish()
        await self.host.manager.shut_down()
        await self.connector.close()


@asynccontextmanager
async def running_daemon(configuration: Configuration, home: Home, mask: Mask) -> AsyncGenerator[Daemon]:
    """Run the daemon's task tree inside the block; the store is migrated before it and closed after it.

    Raises:
        StoreRefused: the database cannot be used, and was not touched.
        TokenRefused: the operator's token cannot be used.
        TracesRefused: traces are asked for in a way that cannot work.
    """
    settings = configuration.settings
    token = operator_token(settings.token, home)
    mask.add([*([token] if token else []), *header_secrets(configuration.environment.values)])
    tokens = Tokens(token)
    async with (
        _tracer(configuration) as tracer,
        open_store(settings.database_url or home.database) as store,
        anyio.create_task_group() as group,
    ):
        record = ChildRecord(home.children)
        await record.end_survivors()
        telemetry = Telemetry(tracer=tracer)
        connector = Connector(
            settings, configuration.environment.values, mask, reaper=Reaper(record), telemetry=telemetry
        )
        boards = Boards(settings, telemetry=telemetry)
        manager = WorkspaceManager(
            settings=settings,
            defaults=configuration.defaults,
            store=store,
            connector=connector,
            kept=boards,
        )
        await group.start(manager.run)
        host = Host(settings, manager, boards, store, telemetry)
        streams = OpenStreams(limit=settings.max_streams)
        app = build_application(
            [*AGUI_ROUTES, *REST_ROUTES],
            host=host,
            tokens=tokens,
            streams=streams,
            exposition=Exposition(telemetry.measures, gauges(host, streams)),
        )
        async with streams.running():
            yield Daemon(app, host, streams, connector, tokens)
        group.cancel_scope.cancel()


@asynccontextmanager
async def _tracer(configuration: Configuration) -> AsyncGenerator[Tracer]:
    """Give the tracer that the operator asked for."""
    if not configuration.exports_traces:
        yield PassingTracer()
        return
    from app.observe.otlp import exporting_tracer  # noqa: PLC0415 the SDK is loaded only where it is used

    async with exporting_tracer() as tracer:
        yield tracer
