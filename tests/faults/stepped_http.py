"""The steps that a case writes for a stdio peer, as answers of the scripted HTTP server. SPEC §connection.

What only a process can do (stderr, raw lines, grandchildren) has no counterpart and is left out.
"""

from typing import Any

from tests.faults.stdio_peer import NEVER_MS, envelope, told_of
from tests.support.scripted_http import (
    HANG,
    Chunk,
    Reply,
    Script,
    Seen,
    default_answers,
    error,
    event,
    json_reply,
    stream,
)

Json = dict[str, Any]


def stepped_answers(peer: Json) -> dict[str, Script]:
    """Return the answers by method; a stream where a step comes before the result."""
    answers: dict[str, Script] = {}
    for name, steps in told_of(peer).items():
        method, _, tool = name.partition(" ")
        turns = sorted({_turn(step) for step in steps})
        replies = [_reply(method, [step for step in steps if _turn(step) == turn]) for turn in turns]
        answers[method] = _for_tool(tool, replies[0]) if tool else replies
    for method, text in peer.get("raw_json", {}).items():
        body = f'{{"jsonrpc":"2.0","id":$id,"result":{text}}}'
        answers[method] = Reply(headers={"Content-Type": "application/json"}, body=body)
    return answers


def _turn(step: Json) -> int:
    """Return the request that a step is for, 0 for every one; a process that is born lists once."""
    return step.get("nth", step.get("birth", 0))


def _for_tool(tool: str, reply: Reply) -> Script:
    def script(seen: Seen) -> Reply:
        good = default_answers()[seen.method]
        assert isinstance(good, Reply)
        return reply if seen.params["name"] == tool else good

    return script


def _reply(method: str, steps: list[Json]) -> Reply:
    chunks: list[Chunk] = []
    for step in steps:
        match step:
            case {"sleep": milliseconds} if milliseconds >= NEVER_MS:
                return stream(*chunks, HANG)
            case {"sleep": milliseconds}:
                chunks.append(milliseconds / 1000)
            case {"notify": notification}:
                chunks += [event({"jsonrpc": "2.0", **notification})] * step.get("times", 1)
            case {"exit": _} | {"self_kill": _}:
                return Reply(raw=(), then="reset")
            case {"result": result}:
                message = {"jsonrpc": "2.0", "id": "$id", "result": {**envelope(method), **result}}
                return stream(*chunks, event(message)) if chunks else json_reply(message)
            case {"error": told}:
                message = {"jsonrpc": "2.0", "id": "$id", "error": told}
                return stream(*chunks, event(message)) if chunks else json_reply(message)
            case _:
                pass
    good = default_answers().get(method, error(-32601))
    assert isinstance(good, Reply)
    return stream(*chunks, f"data: {good.body}\n\n")
