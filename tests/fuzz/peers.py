"""What servers send: messages, streams, catalogs, schemas, results, tasks. SPEC §connection, §prepare, §calls."""

from collections.abc import Callable
from typing import Any, Final, cast

import orjson

from app.connections import classify, progress, subscription_filter, wire
from app.connections.line_splitter import EDGE, LineSplitter, Oversized
from app.connections.sse import EventStream
from app.core import param_headers
from app.core.answers import AnswerTooLarge, HttpRefusal, Progress, RemoteError, Result
from app.core.cache_control import cache_control
from app.core.elicitation import input_required
from app.core.interrupts import ResumeEntry
from app.core.json_value import Json, JsonObject
from app.core.listing import PageError, read_page
from app.core.operation_problems import InputUnsupported, ToolResultInvalid
from app.core.policy import judge
from app.core.problem import Problem
from app.core.read_results import completion_result, prompt_result, resource_result
from app.core.remote_errors import refusal_problem
from app.core.schemas import SchemaInvalid, require_usable, validate
from app.core.signatures import LENGTH_MAX, signature
from app.core.task import Task
from app.core.tool_results import tool_result
from tests.fuzz.target import CANARY, JSON_WORDS, URL_WORDS, Target, json_of, object_of, refused

LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def _writable(value: Json) -> None:
    """Hold that what was taken can be written again: it goes on to clients."""
    orjson.dumps(value)


def _message(data: bytes) -> None:
    message = wire.decode(data)
    if isinstance(message, wire.Response) and isinstance(message.answer, Result):
        _writable(message.answer.value)
    if isinstance(message, wire.Response) and isinstance(message.answer, RemoteError):
        _writable(refusal_problem("s", message.answer).document())
    if isinstance(message, wire.Malformed):
        assert CANARY not in message.reason
    if isinstance(message, wire.Notification):
        shown = progress.read(message)
        if shown is not None:
            _writable(shown.following(Progress(1.0)).document())
        subscription_filter.read_filter(message.params.get("notifications"))


def _lines(data: bytes) -> None:
    splitter, whole = LineSplitter(600), LineSplitter(600)
    cut = len(data) // 3
    pieces = [line for piece in (data[:cut], data[cut:]) for line in splitter.feed(piece)]
    assert pieces == [*whole.feed(data)], "chunks change what is read"
    for line in pieces:
        if isinstance(line, Oversized):
            assert len(line.edges) <= 2 * EDGE
        else:
            wire.decode(line)


def _events(data: bytes) -> None:
    def fed(*chunks: bytes) -> list[bytes] | None:
        stream = EventStream(limit=128)
        try:
            return [event for chunk in chunks for event in stream.feed(chunk)]
        except AnswerTooLarge:
            return None

    whole = fed(data)
    singly = fed(*(data[index : index + 1] for index in range(len(data))))
    # A long line that is no data is passed over where it comes in one piece, and refused where it does not.
    assert None in (whole, singly) or whole == singly, "chunks change what is read"


def _catalog(data: bytes) -> None:
    value = object_of(data)
    cache_control(value)
    for method in LISTS:
        try:
            page = read_page(method, value)
        except PageError as error:
            refused(error)
            continue
        for entry in page.entries if method == "tools/list" else ():
            judge(entry.raw, is_http=True, max_schema_depth=64, max_schema_nodes=10_000)


def _schema(data: bytes) -> None:
    value = json_of(data)
    try:
        require_usable(value, max_depth=64, max_nodes=10_000)
    except SchemaInvalid as invalid:
        refused(invalid)
        return
    schema = cast("JsonObject", value)
    assert len(signature(schema)) <= LENGTH_MAX
    param_headers.fault(orjson.dumps(schema))
    instances: tuple[Json, ...] = ({}, {"a": [CANARY, 1, None, {"a": {"a": []}}]}, schema)
    for instance in instances:
        assert CANARY not in repr(validate(schema, instance)) or CANARY.encode() in data


def _result(data: bytes) -> None:
    value = object_of(data)
    takers: tuple[Callable[[], Json], ...] = (
        lambda: tool_result(value, server="s", output_schema=b'{"type": "object", "required": ["a"]}'),
        lambda: resource_result(value, server="s"),
        lambda: prompt_result(value, server="s"),
        lambda: completion_result(value, server="s"),
        lambda: input_required(value, operation="o", server="s", tool="t").retry(
            {}, [ResumeEntry("i", "cancelled")] * len(cast("Any", value.get("inputRequests")) or ())
        ),
    )
    for take in takers:
        try:
            taken = take()
        except (ToolResultInvalid, InputUnsupported) as problem:
            refused(problem)
        else:
            _writable(taken)


def _task(data: bytes) -> None:
    value = object_of(data)
    try:
        task = Task(value, "s")
        task.begun(value)
        assert task.poll().seconds >= 0.05
        task.tell(Result(value, len(data)))
        task.observe(value)
        _writable(task.fresh_requests(value))
        _writable(task.result(value))
    except ToolResultInvalid as problem:
        refused(problem)


def _discovery_answer(data: bytes) -> None:
    value, peer = object_of(data), classify.Peer("s", "http")
    code = value.get("code")
    error = RemoteError(code if type(code) is int else -32022, str(value.get("message")), value.get("data"))
    for answer in (Result(value, len(data)), error, HttpRefusal(403, str(value.get("message")))):
        try:
            classify.discovered(answer, peer)
        except Problem as problem:
            _writable(problem.document())
    _writable(refusal_problem("s", error).document())


_TOOL: Final = (
    b'{"tools": [{"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"type": '
    b'"string", "x-mcp-header": "A"}}}, "outputSchema": {"type": "object"}}], "nextCursor": "", "ttlMs": 5, "cacheScope": "public"}'
)
_SCHEMA: Final = (
    (
        b'{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, '
        b'"required": ["a"], "$defs": {"a": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/a"}}, {"const": 1}, '
        b'{"enum": ["x", null]}, {"pattern": "^(?=a)[a-z]{1,9}$"}]}}, "unevaluatedProperties": false}'
    ),
    b'{"type": "object", "patternProperties": {"^a+$": {"$dynamicRef": "#m"}}, "$defs": {"b": {"$dynamicAnchor": "m"}}}',
    b'{"type": ["object"], "if": {"not": {}}, "then": {"allOf": [true, {"oneOf": [{}, false]}]}, "else": {"$ref": "#"}}',
)
_SCHEMA_WORDS: Final = (
    *(
        b'"$ref": "#"',
        b'"$ref": "#/$defs/a"',
        b'"pattern": "(a+)+$"',
        b'"pattern": "(?<=a)\\\\1"',
        b'"\\\\p{L}{999}"',
    ),
    *(
        b'"unevaluatedItems": {}',
        b'"items": ',
        b'"prefixItems": []',
        b'"allOf": [',
        b'"anyOf": [',
        b'"minimum": ',
    ),
    *(b'"$id": "x"', b'"$anchor": "a"', b'"dependentSchemas": ', b'"multipleOf": 0', b'"multipleOf": 1e-300'),
    *(
        b'"const": "canary-5e7d1c-secret"',
        b'"maxLength": -1',
        b'"contains": ',
        b'"x-mcp-header": "\\n"',
        b'"$recursiveRef": "#"',
    ),
)

TARGETS: Final = (
    Target(
        "wire",
        _message,
        (
            b'{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "n": 1.5}}',
            b'{"jsonrpc": "2.0", "id": "1", "error": {"code": -32602, "message": "m", "data": []}}',
            b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1e300, "total": 2}}',
        ),
        JSON_WORDS,
    ),
    Target("stdio-lines", _lines, (b'{"jsonrpc": "2.0"}\n\n  \nx' * 9,), (b"\n", b"\r\n", b" " * 64, b"x" * 65)),
    Target(
        "sse",
        _events,
        (b"\xef\xbb\xbf: hi\nevent: message\ndata: {\ndata:  }\r\n\r\ndata\r\rid: 3\n\n",),
        (b"\n", b"\r", b"\r\n", b"data:", b"data", b": ", b"\xef\xbb\xbf", b"x" * 140),
        steps_per_byte=200,
    ),
    Target("catalog", _catalog, (_TOOL, b'{"prompts": [{"name": "p"}], "resources": [{"uri": "u"}]}'), JSON_WORDS, steps_per_byte=400),
    Target("schema", _schema, _SCHEMA, (*_SCHEMA_WORDS, *JSON_WORDS), steps_fixed=200_000, steps_per_byte=2_000),
    Target(
        "result",
        _result,
        (
            b'{"content": [{"type": "text", "text": "t"}, {"type": "resource", "resource": {"uri": "u", "text": "t"}}], "isError": false}',
            b'{"completion": {"values": ["a"], "total": 1e300, "hasMore": true}, "messages": [{"role": "user", "content": {"type": "text", "text": ""}}]}',
            b'{"inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}}}}',
            b'{"inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "m", "mode": "url", "url": "https://a.b/c"}}}, "requestState": "s"}',
        ),
        (*JSON_WORDS, *URL_WORDS),
        steps_fixed=20_000,
        steps_per_byte=400,
    ),
    Target(
        "task",
        _task,
        (
            b'{"resultType": "task", "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 1, "pollIntervalMs": 5}',
            b'{"taskId": "t", "status": "completed", "result": {"content": []}, "inputRequests": {"a": {}}}',
        ),
        (*JSON_WORDS, b'"status": "failed"', b'"pollIntervalMs": 1e308', b'"lastUpdatedAt": "9999-99-99"'),
    ),
    Target(
        "discovery",
        _discovery_answer,
        (
            b'{"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}}',
            b'{"code": -32022, "message": "m", "data": {"supported": ["2026-07-28"]}}',
        ),
        JSON_WORDS,
    ),
)  # fmt: skip
