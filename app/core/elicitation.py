"""Input that a peer requires before it goes on: its questions, and the responses that answers make. SPEC §calls.

MCP 2026-07-28 basic/patterns/mrtr and client/elicitation. Everything of one result is judged before anybody is asked:
one request that cannot be put fails the whole set. ``requestState`` is carried, never looked into.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from app.core.interrupts import Question, ResumeEntry
from app.core.json_value import Json, JsonObject
from app.core.operation_problems import InputUnsupported, ToolResultInvalid
from app.core.schemas import SchemaInvalid, require_usable
from app.core.web_host import shown_host, web_host

ELICIT = "elicitation/create"
REQUESTS_MAX = 64
"""Questions of one result; a person is not asked more at once."""
SCHEMAS_MAX = 256 * 1024
"""Bytes of JSON of all the forms of one result: a few thousand choices, judged without holding up anybody."""
_CONSENT: JsonObject = {"type": ["object", "null"]}
"""What answers a URL: the status alone, whatever the payload."""


@dataclass(frozen=True, slots=True)
class InputRequest:
    """One elicitation of an ``InputRequiredResult``."""

    key: str
    """The server's identifier, which the response carries back."""
    question: Question
    is_form: bool


@dataclass(frozen=True, slots=True)
class InputRequired:
    """What a result of type ``input_required`` asks for."""

    requests: tuple[InputRequest, ...]
    """Empty where the result only asks to be sent again with its state."""
    request_state: str | None
    """None where it is absent, which it then stays."""

    def retry(self, params: JsonObject, entries: Sequence[ResumeEntry]) -> JsonObject:
        """Return the parameters of the originating request with the answers, in the order of the requests."""
        again: JsonObject = dict(params)
        if self.requests:
            again["inputResponses"] = {
                request.key: _response(request, entry)
                for request, entry in zip(self.requests, entries, strict=True)
            }
        if self.request_state is not None:
            again["requestState"] = self.request_state
        return again


def input_required(value: JsonObject, *, operation: str, server: str, tool: str | None) -> InputRequired:
    """Return what the result asks for.

    Raises:
        InputUnsupported: a request is no elicitation, of an unknown mode, or leads to what is no http(s) URL.
        ToolResultInvalid: the result breaks the protocol; a null member counts as absent.
    """
    requests, state = value.get("inputRequests"), value.get("requestState")
    if state is not None and not isinstance(state, str):
        raise ToolResultInvalid(server, "its requestState is no text")
    if requests is None:
        requests = {}
    if not isinstance(requests, dict):
        raise ToolResultInvalid(server, "its inputRequests are no object")
    if not requests and state is None:
        raise ToolResultInvalid(server, "it requires input and asks for none")
    if len(requests) > REQUESTS_MAX:
        raise InputUnsupported(server, f"more than {REQUESTS_MAX} questions at once")
    if _size_of_forms(requests.values()) > SCHEMAS_MAX:
        raise InputUnsupported(server, f"forms of more than {SCHEMAS_MAX} bytes")
    about: JsonObject = {"operation": operation, "server": server}
    if tool is not None:
        about["tool"] = tool
    return InputRequired(tuple(_request(key, each, about) for key, each in requests.items()), state)


def _size_of_forms(requests: Iterable[Json]) -> int:
    """Return how large the schemas are before one of them is judged."""
    params = [each.get("params") for each in requests if isinstance(each, dict)]
    schemas = [each.get("requestedSchema") for each in params if isinstance(each, dict)]
    return len(orjson.dumps(schemas))


def _request(key: str, request: Json, about: JsonObject) -> InputRequest:
    server = str(about["server"])
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise ToolResultInvalid(server, "an input request is no object with a method")
    if request["method"] != ELICIT:
        raise InputUnsupported(server, "a request other than elicitation/create")
    params = request.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("message"), str):
        raise ToolResultInvalid(server, "an elicitation has no message")
    match params.get("mode", "form"):
        case "form":
            return InputRequest(key, _form(params, about), is_form=True)
        case "url":
            return InputRequest(key, _url(params, about), is_form=False)
        case _:
            raise InputUnsupported(server, "an elicitation of an unknown mode")


def _form(params: JsonObject, about: JsonObject) -> Question:
    server, schema = str(about["server"]), params.get("requestedSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ToolResultInvalid(server, "the requestedSchema of an elicitation is no object schema")
    try:
        require_usable(schema)
    except SchemaInvalid as invalid:
        raise InputUnsupported(server, f"a requestedSchema that is {invalid.reason}") from None
    return Question(
        "input_required", str(params["message"]), schema, {**about, "method": ELICIT, "mode": "form"}
    )


def _url(params: JsonObject, about: JsonObject) -> Question:
    url = params.get("url")
    host = web_host(url) if isinstance(url, str) else None
    if host is None:
        raise InputUnsupported(str(about["server"]), "an elicitation URL that is not http or https")
    metadata: JsonObject = {**about, "method": ELICIT, "mode": "url", "url": url, "host": host}
    # Who wants a page opened and where stands first: the server's own message cannot replace it.
    lead = f"Server '{about['server']}' asks you to open a page at {shown_host(host)}"
    return Question("input_required", f"{lead}: {params['message']}", _CONSENT, metadata)


def _response(request: InputRequest, entry: ResumeEntry) -> JsonObject:
    """Return the ``ElicitResult``: accept, decline and cancel are three different things."""
    if entry.status == "resolved":
        return {"action": "accept", "content": entry.payload} if request.is_form else {"action": "accept"}
    plurnk = entry.metadata.get("plurnk")
    is_declined = isinstance(plurnk, dict) and plurnk.get("action") == "decline"
    return {"action": "decline" if is_declined else "cancel"}
