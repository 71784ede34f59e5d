"""A case's HTTP peer: its short notation turned into the answers of the scripted server. SPEC §connection."""

import json
import re
import zlib
from collections.abc import Callable
from typing import Any

import anyio

from tests.faults.replying import replies
from tests.faults.stepped_http import stepped_answers
from tests.support.scripted_http import (
    ECHO,
    FRESH,
    HANG,
    Reply,
    Script,
    Seen,
    default_answers,
    response_event,
    result,
    stream,
    text_result,
)
from tests.support.subscriptions import acknowledged, changed, discovered, open_stream

Json = dict[str, Any]
_MIB = 1 << 20


class Listening:
    """The answers to ``subscriptions/listen``: streams that stay open and tell of a change at a word."""

    def __init__(self, watched: str = "tools", times: int = 1) -> None:
        self._gates: list[anyio.Event] = []
        self._told = changed(watched) * times
        self._flag = {f"{watched}ListChanged": True}

    def __call__(self, _seen: Seen) -> Reply:
        """Return one more stream."""
        self._gates.append(anyio.Event())
        return open_stream(self._gates[-1], self._told, notifications=self._flag)

    def announce(self) -> None:
        """Tell of the change on every stream."""
        for gate in self._gates:
            gate.set()


def answers_of(peer: Json) -> dict[str, Script]:
    """Return what differs from the default peer, by JSON-RPC method."""
    answers = stepped_answers(peer)
    for member, read in _MEMBERS.items():
        if member in peer:
            answers.update(read(peer[member]))
    if "watched" in peer:
        answers |= _watched(peer["watched"], peer["times"])
    if "json_ctype" in peer:
        answers["tools/list"] = _retyped(result({"tools": [ECHO]}), peer["json_ctype"])
        answers["tools/call"] = _retyped(stream(response_event()), peer["sse_ctype"])
    return answers


def routes_of(peer: Json) -> dict[str, Script]:
    """Return what differs from the default peer, by path."""
    good = {**default_answers(), **answers_of({**peer, "replies": {}})}
    return {route["p"]: _route(route, good) for route in peer.get("routes", ())}


def _route(route: Json, good: dict[str, Script]) -> Script:
    def reply(seen: Seen) -> Reply:
        required = route.get("require", {})
        if not all(
            re.fullmatch(value, seen.headers.get(name.lower(), "")) for name, value in required.items()
        ):
            return Reply(401)
        script = good[seen.method]
        assert not callable(script)
        return script if isinstance(script, Reply) else script[0]

    return Reply(route["status"], route.get("h", {})) if "status" in route else reply


def _retyped(reply: Reply, content_type: str) -> Reply:
    return Reply(reply.status, {"Content-Type": content_type}, reply.body, reply.chunks)


def _answers(by_method: Json) -> dict[str, Script]:
    answers: dict[str, Script] = {}
    for method, told in by_method.items():
        reply = _reply(told)
        answers[method] = [reply, text_result("ok")] if told.get("nth") == 1 else reply
    return answers


def _reply(told: Json) -> Reply:
    status, headers = told.get("status", 200), told.get("h", {})
    if "json" in told:
        text = json.dumps(told["json"])
        text = re.sub(r'"str:\$id"', '"$id"', text.replace('"$id"', "$id"))
        return Reply(status, {"Content-Type": "application/json", **headers}, text)
    if "gzip_zeros_mib" in told:
        return Reply(status, headers, gzip_of_zeros(told["gzip_zeros_mib"]))
    return Reply(status, headers, told.get("body", ""))


def gzip_of_zeros(mebibytes: int) -> bytes:
    """Return so many MiB of zeros as gzip without ever holding them; the checksum at its end is wrong."""
    head = bytes.fromhex("1f8b08000000000000ff")
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = block.compress(bytes(_MIB)) + block.flush(zlib.Z_FULL_FLUSH)
    return head + piece * mebibytes + b"\x03\x00" + bytes(8)


def _streams(by_method: Json) -> dict[str, Script]:
    return {method: stream(*chunks) for method, chunks in by_method.items()}


def _bytewise(by_method: Json) -> dict[str, Script]:
    answers: dict[str, Script] = {}
    for method, told in by_method.items():
        answers[method] = _in_bytes(told["text"])
    return answers


def _in_bytes(text: str) -> Callable[[Seen], Reply]:
    def reply(seen: Seen) -> Reply:
        value = {**FRESH, "content": [{"type": "text", "text": text}]}
        message = {"jsonrpc": "2.0", "id": seen.message["id"], "result": value}
        data = f"data: {json.dumps(message, ensure_ascii=False)}\n\n".encode()
        return stream(*(data[at : at + 1] for at in range(len(data))))

    return reply


def _timed(by_method: Json) -> dict[str, Script]:
    answers: dict[str, Script] = {}
    for method, steps in by_method.items():
        milliseconds = sum(step.get("sleep", 0) for step in steps)
        text = next(step["result"] for step in steps if "result" in step)
        answers[method] = stream(milliseconds / 1000, response_event(text))
    return answers


def _sequences(by_method: Json) -> dict[str, Script]:
    return {
        method: [
            Reply(raw=(), then="reset") if told.get("then") == "reset" else text_result("ok") for told in seq
        ]
        for method, seq in by_method.items()
    }


def _by_bearer(names: dict[str, list[str]]) -> dict[str, Script]:
    def reply(seen: Seen) -> Reply:
        bearer = seen.headers.get("authorization", "").removeprefix("Bearer ")
        tools = [{**ECHO, "name": name} for name in names.get(bearer, ())]
        return result({"tools": tools, "ttlMs": 60_000, "cacheScope": "private"})

    return {"tools/list": reply}


def _blackhole(_after: str) -> dict[str, Script]:
    return {"tools/call": Reply(raw=(HANG,), then="close")}


def _resources(uris: list[str]) -> dict[str, Script]:
    listed = [{"uri": uri, "name": uri} for uri in uris]
    return {"resources/list": result({"resources": listed}), "resources/read": result({"contents": []})}


def _listen(told: str) -> dict[str, Script]:
    """Return the answers of a server that tells of its tools, whether or not the case says so."""
    streams: Script = stream(acknowledged()) if told == "ack then close" else Listening()
    return {"server/discover": discovered(), "subscriptions/listen": streams}


def _watched(capability: str, times: int) -> dict[str, Script]:
    """Return the answers of a server that tells so many times at once of the lists of a capability."""
    capabilities: Json = {"tools": {}, "resources": {}, "prompts": {}, capability: {"listChanged": True}}
    streams = Listening(capability, times)
    return {"server/discover": discovered(capabilities), "subscriptions/listen": streams}


_MEMBERS: dict[str, Callable[[Any], dict[str, Script]]] = {
    "replies": replies,
    "resources": _resources,
    "listen": _listen,
    "answer": _answers,
    "sse": _streams,
    "sse_bytes": _bytewise,
    "sse_timed": _timed,
    "seq": _sequences,
    "tools_by_bearer": _by_bearer,
    "blackhole_after": _blackhole,
}
