"""A process that imports the libraries the daemon is made of and does nothing: what its base memory is held against."""

import sys

import aiohttp
import aiosqlite
import alembic.command
import fastapi
import httpx2
import jsonschema_rs
import mcp_types
import orjson
import pydantic
import rfc8785
import sqlalchemy.ext.asyncio
import structlog
import uvicorn
import uvloop
from ag_ui.core import RunAgentInput
from authlib.integrations import httpx_client

USED = (
    aiohttp, aiosqlite, alembic.command, fastapi, httpx2, jsonschema_rs, mcp_types, orjson, pydantic, rfc8785,
    sqlalchemy.ext.asyncio, structlog, uvicorn, uvloop, RunAgentInput, httpx_client,
)  # fmt: skip

if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
