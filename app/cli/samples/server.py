"""What a sample server answers: one JSON-RPC request in, one response out, no transport. MCP 2026-07-28.

It shows a server of the one revision at its plainest: every request carries its own protocol version and
capabilities, nothing is remembered between two of them. The transports have files of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
LIST_TTL_MS = 300_000
READ_TTL_MS = 0

JsonObject: TypeAlias = dict[str, Any]
Report: TypeAlias = Callable[[float, float, str], None]
"""Tells a tool's caller: progress so far, total, message. Raises ``CancelledError`` once nobody waits."""


class CancelledError(Exception):
    """The client is no longer interested; stop working."""


class RequestError(Exception):
    """The request is answered with a JSON-RPC error."""

    def __init__(
        self, code: int, message: str, *, http_status: int = 200, data: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status
        self.data = data

    def document(self) -> JsonObject:
        """Return the JSON-RPC error object."""
        document: JsonObject = {"code": self.code, "message": self.message}
        if self.data is not None:
            document["data"] = self.data
        return document


class ToolError(Exception):
    """The tool ran and says no: the result carries ``isError``."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the list shows, and what runs."""

    definition: JsonObject
    run: Callable[[JsonObject, Report], str | JsonObject]
    """Takes the arguments; returns the text, or the structured result that ``outputSchema`` describes."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource with its text."""

    definition: JsonObject
    text: str


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """A family of resources under one URI prefix; ``texts`` holds them by the rest of the URI."""

    definition: JsonObject
    prefix: str
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: what the list shows, how it is filled in, and what completes its arguments."""

    definition: JsonObject
    fill: Callable[[Mapping[str, str]], str]
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True, slots=True)
class SampleServer:
    """A whole server as a value."""

    name: str
    instructions: str
    tools: Sequence[Tool]
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()
    prompts: Sequence[Prompt] = ()
    version: str = "1.0.0"

    def answer(self, method: str, params: JsonObject, report: Report) -> JsonObject:
        """Return the result of one request.

        Raises:
            RequestError: it is malformed, of another revision, or unknown.
            CancelledError: the client went away while a tool ran.
        """
        require_metadata(params)
        handler = _HANDLERS.get(method)
        if handler is None:
            raise RequestError(-32601, f"Method not found: {method}", http_status=404)
        result = handler(self, params, report)
        identity = {"name": self.name, "version": self.version}
        return {"resultType": "complete", **result, "_meta": {f"{META}serverInfo": identity}}


def require_metadata(params: JsonObject) -> None:
    """Return where the request says which revision it speaks and that we speak it too.

    Raises:
        RequestError: required metadata is missing (MCP basic/index, "_meta"), or the revision is another one.
    """
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    version = meta.get(f"{META}protocolVersion")
    if not isinstance(version, str) or not isinstance(meta.get(f"{META}clientCapabilities"), dict):
        raise RequestError(-32602, "Required request metadata is missing", http_status=400)
    if version != REVISION:
        data = {"supported": [REVISION], "requested": version}
        raise RequestError(-32022, "Unsupported protocol version", http_status=400, data=data)


def _cacheable(ttl_ms: int, **members: Any) -> JsonObject:
    return {**members, "ttlMs": ttl_ms, "cacheScope": "public"}


def _discover(server: SampleServer, _params: JsonObject, _report: Report) -> JsonObject:
    capabilities: JsonObject = {"tools": {}}
    if server.resources or server.templates:
        capabilities["resources"] = {}
    if server.prompts:
        capabilities |= {"prompts": {}, "completions": {}}
    return _cacheable(
        LIST_TTL_MS, supportedVersions=[REVISION], capabilities=capabilities, instructions=server.instructions
    )


def _list_tools(server: SampleServer, _params: JsonObject, _report: Report) -> JsonObject:
    return _cacheable(LIST_TTL_MS, tools=[tool.definition for tool in server.tools])


def _list_resources(server: SampleServer, _params: JsonObject, _report: Report) -> JsonObject:
    return _cacheable(LIST_TTL_MS, resources=[resource.definition for resource in server.resources])


def _list_templates(server: SampleServer, _params: JsonObject, _report: Report) -> JsonObject:
    return _cacheable(LIST_TTL_MS, resourceTemplates=[template.definition for template in server.templates])


def _list_prompts(server: SampleServer, _params: JsonObject, _report: Report) -> JsonObject:
    return _cacheable(LIST_TTL_MS, prompts=[prompt.definition for prompt in server.prompts])


def _call_tool(server: SampleServer, params: JsonObject, report: Report) -> JsonObject:
    tool = next((tool for tool in server.tools if tool.definition["name"] == params.get("name")), None)
    if tool is None:
        raise RequestError(-32602, "Unknown tool")
    try:
        value = tool.run(params.get("arguments") or {}, report)
    except ToolError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}], "isError": False}
    text = ", ".join(f"{name}: {member}" for name, member in value.items())
    return {"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": False}


def _read_resource(server: SampleServer, params: JsonObject, _report: Report) -> JsonObject:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RequestError(-32602, "The parameter 'uri' is required")
    text = next((resource.text for resource in server.resources if resource.definition["uri"] == uri), None)
    for template in server.templates:
        if text is None and uri.startswith(template.prefix):
            text = template.texts.get(uri.removeprefix(template.prefix))
    if text is None:
        raise RequestError(-32602, "Resource not found", data={"uri": uri})
    return _cacheable(READ_TTL_MS, contents=[{"uri": uri, "mimeType": "text/plain", "text": text}])


def _prompt(server: SampleServer, name: object) -> Prompt:
    for prompt in server.prompts:
        if prompt.definition["name"] == name:
            return prompt
    raise RequestError(-32602, "Unknown prompt")


def _get_prompt(server: SampleServer, params: JsonObject, _report: Report) -> JsonObject:
    prompt = _prompt(server, params.get("name"))
    arguments = params.get("arguments") or {}
    for argument in prompt.definition.get("arguments", []):
        if argument.get("required") and argument["name"] not in arguments:
            raise RequestError(-32602, f"The argument '{argument['name']}' is required")
    message = {"role": "user", "content": {"type": "text", "text": prompt.fill(arguments)}}
    return {"description": prompt.definition["description"], "messages": [message]}


def _complete(server: SampleServer, params: JsonObject, _report: Report) -> JsonObject:
    reference, argument = params.get("ref") or {}, params.get("argument") or {}
    if reference.get("type") != "ref/prompt":
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    choices = _prompt(server, reference.get("name")).choices.get(str(argument.get("name")), ())
    values = [choice for choice in choices if choice.startswith(argument.get("value", ""))]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


_HANDLERS: Mapping[str, Callable[[SampleServer, JsonObject, Report], JsonObject]] = {
    "server/discover": _discover,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}
