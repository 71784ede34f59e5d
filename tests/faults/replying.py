"""Answers of an HTTP peer that an own variant says byte by byte, by method. SPEC §connection.

``replies`` has a reply, or a list of them for successive requests, for each method.
"""

import json
import zlib
from typing import Any

from tests.faults.whole_peer import each_method
from tests.support.scripted_http import FRESH, HANG, Chunk, Reply, Script, json_reply

Json = dict[str, Any]


def replies(by_method: Json) -> dict[str, Script]:
    """Return the answers by method."""
    return {
        method: [_reply(each) for each in told] if isinstance(told, list) else _reply(told)
        for method, told in each_method(by_method).items()
    }


def _reply(told: Json) -> Reply:
    """Return one answer: ``result``, ``error``, ``sse`` (chunks), ``raw`` (all of it) or a ``body``."""
    members: dict[str, Any] = {"status": told.get("status", 200), "then": told.get("then", "keep")}
    match told:
        case {"result": result}:
            message = {"jsonrpc": "2.0", "id": "$id", "result": {**FRESH, **result}}
            made = json_reply(message, **members)
        case {"error": error}:
            made = json_reply({"jsonrpc": "2.0", "id": "$id", "error": error}, **members)
        case {"sse": chunks}:
            made = Reply(headers={"Content-Type": "text/event-stream"}, chunks=_chunks(chunks), **members)
        case {"raw": chunks}:
            made = Reply(raw=_chunks(chunks), **members)
        case {"json": text}:
            made = Reply(headers={"Content-Type": "application/json"}, body=text, **members)
        case {"deflate_mib": count, "wbits": bits}:
            made = Reply(body=bomb(count, bits), **members)
        case _:
            made = Reply(body=told.get("body", ""), **members)
    made.headers.update(told.get("h", {}))
    return made


def _chunks(told: list[Any]) -> list[Chunk]:
    return [_chunk(each) for each in told]


def _chunk(told: Any) -> Chunk:
    match told:
        case {"sleep": milliseconds}:
            return milliseconds / 1000
        case {"hang": _}:
            return HANG
        case {"message": message}:
            return "data: " + json.dumps(message).replace('"$id"', "$id") + "\n\n"
        case _:
            return str(told)


def bomb(mebibytes: int, bits: int) -> bytes:
    """Return so many MiB of blanks compressed, never held whole."""
    packer, piece = zlib.compressobj(9, zlib.DEFLATED, bits), b" " * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(mebibytes)) + packer.flush()
