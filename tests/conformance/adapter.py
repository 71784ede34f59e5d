"""One scenario of the official suite, done to the running daemon through its public HTTP door. SPEC §rest, §oauth.

The suite runs it as a program with the scenario server's URL as its last argument. It speaks the daemon's HTTP API and
nothing else: attach, sign in as a browser would, call what the scenario wants called, answer what is asked, detach.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx2

Json = dict[str, Any]
REDIRECT = "http://127.0.0.1:7777/callback"
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
SECRET = "CONFORMANCE_SECRET"
"""The variable of the daemon's environment from which a definition takes the scenario's client secret."""
MACHINE_SECRET = "CONFORMANCE_MACHINE_SECRET"
SERVER = "peer"
REFUSED = {
    "auth/resource-mismatch": "oauth-metadata-invalid",
    "auth/metadata-issuer-mismatch": "oauth-metadata-invalid",
    "auth/iss-supported-missing": "oauth-callback-invalid",
    "auth/iss-wrong-issuer": "oauth-callback-invalid",
    "auth/iss-unexpected": "oauth-callback-invalid",
    "auth/iss-normalized": "oauth-callback-invalid",
    "auth/scope-retry-limit": "authorization-refused",
}
"""The Problem that attaching has to end in."""


class UnexpectedError(Exception):
    """The daemon answered otherwise than the scenario needs."""


class Door:
    """The daemon's HTTP API for one workspace."""

    def __init__(self, client: httpx2.Client, workspace: str) -> None:
        self._client = client
        self._path = f"/v1/workspaces/{workspace}"

    def act(self, kind: str, **params: Any) -> Json:
        """Do one action and whatever it asks for; return its result or its Problem."""
        return self._settled(self._post("/actions", {"kind": f"workspace.mcp.{kind}", **params}))

    def call(self, tool: str, arguments: Json | None = None) -> Json:
        """Call a tool and return its result.

        Raises:
            UnexpectedError: it ended in a Problem.
        """
        result = self.act("call", server=SERVER, tool=tool, arguments=arguments or {})
        if "content" not in result:
            raise UnexpectedError(f"{tool}: {result}")
        return result

    def _post(self, path: str, body: Json) -> Json:
        return self._client.post(self._path + path, json=body).json()

    def _settled(self, answer: Json) -> Json:
        """Follow what the daemon asks for, for as long as it asks: it bounds, nobody here does."""
        while True:
            if url := answer.get("authorization", {}).get("url"):
                kind = "workspace.mcp.oauth.complete"
                action = {"kind": kind, "name": SERVER, "callbackUrl": callback_of(url)}
                answer = self._post("/actions", action)
            elif asked := answer.get("interrupts"):
                answer = self._post(f"/interactions/{asked[0]['id']}", _reply_to(asked[0]))
            else:
                return answer


def _reply_to(interrupt: Json) -> Json:
    """Return what a person would answer: they sign in, or they confirm."""
    if interrupt["reason"] == "plurnk:authorization":
        return _resolved({"callbackUrl": callback_of(interrupt["metadata"]["plurnk"]["url"])})
    return _resolved({"confirmed": True})


def _resolved(payload: Json) -> Json:
    return {"status": "resolved", "payload": payload}


def callback_of(url: str) -> str:
    """Return where the authorization server sends the browser back to, which nobody follows."""
    response = httpx2.get(url, follow_redirects=False, trust_env=False, timeout=50)
    if not response.is_redirect:
        raise UnexpectedError(f"the authorization server answered {response.status_code}")
    return response.headers["location"]


def definition_of(scenario: str, url: str, context: Json) -> Json:
    """Return the definition that a scenario attaches."""
    definition: Json = {"name": SERVER, "transport": "http", "url": url}
    if not scenario.startswith("auth/"):
        return definition
    client: Json = {"type": "oauth", "redirectUrl": REDIRECT}
    if scenario == "auth/basic-cimd":
        client |= {"clientMetadataUrl": CLIENT_METADATA}
    elif scenario == "auth/pre-registration":
        client |= {"clientId": context["client_id"], "clientSecret": _reference(SECRET, context)}
    elif scenario == "auth/client-credentials-basic":
        secret = _reference(MACHINE_SECRET, context)
        client = {"type": "client-credentials", "clientId": context["client_id"], "clientSecret": secret}
    return {**definition, "authorization": client}


def _reference(variable: str, context: Json) -> str:
    """Return the reference to the context's secret, which the daemon has to have from its environment."""
    if os.environ.get(variable) != context["client_secret"]:
        raise UnexpectedError(f"{variable} is not the secret of the scenario")
    return f"${{{variable}}}"


def call_nothing(_door: Door, _context: Json) -> None:
    """Leave it at attaching."""


def add_numbers(door: Door, _context: Json) -> None:
    """Add five and three."""
    door.call("add_numbers", {"a": 5, "b": 3})


def use_everything(door: Door, _context: Json) -> None:
    """Call each tool, read each resource, get each prompt."""
    call_exposed(door, {})
    for resource in door.act("read", uri=f"{SERVER}:///resources")["resources"]:
        door.act("read", uri=f"{SERVER}:///resources/{quote(resource['uri'], safe='')}")
    for prompt in door.act("read", uri=f"{SERVER}:///prompts")["prompts"]:
        door.act("read", uri=f"{SERVER}:///prompts/{quote(prompt['name'], safe='')}")


def replay_calls(door: Door, context: Json) -> None:
    """Call what the context says, to the letter; what the daemon refuses to send is the suite's to miss."""
    for call in context["toolCalls"]:
        door.act("call", server=SERVER, tool=call["name"], arguments=call["arguments"])


def call_exposed(door: Door, _context: Json) -> None:
    """Call every tool that the daemon exposes."""
    for tool in door.act("tools", server=SERVER, schemas=True)["tools"]:
        door.call(tool["tool"], _sample(tool.get("inputSchema", {})))


def _sample(schema: Json) -> Json:
    values = {"string": "value", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties", {})
    return {name: values[properties[name]["type"]] for name in schema.get("required", ())}


def answer_rounds(door: Door, _context: Json) -> None:
    """Call the tools that ask twice, one that asks nothing, and one whose result does not say what it is."""
    for tool in ("echo_state", "unrelated", "no_state"):
        door.call(f"test_mrtr_{tool}")
    if door.call("test_mrtr_no_result_type")["isError"]:
        raise UnexpectedError("a result without resultType is complete")


def look_up_user(door: Door, _context: Json) -> None:
    """Call a tool whose schema names a document on the network; that it is refused unsent is all right."""
    door.act("call", server=SERVER, tool="lookup_user", arguments={"id": "user-1", "profile": {}})


def echo_schema(door: Door, _context: Json) -> None:
    """Send one tool's schema to another as it was listed."""
    tools = {tool["tool"]: tool for tool in door.act("tools", server=SERVER, schemas=True)["tools"]}
    door.call("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]})


def call_protected(door: Door, _context: Json) -> None:
    """Call the tool of the servers that want a token."""
    door.call("test-tool")


STEPS: dict[str, Callable[[Door, Json], None]] = {
    "tools_call": add_numbers,
    "request-metadata": call_nothing,
    "http-standard-headers": use_everything,
    "http-custom-headers": replay_calls,
    "http-invalid-tool-headers": call_exposed,
    "sep-2322-client-request-state": answer_rounds,
    "json-schema-ref-no-deref": look_up_user,
    "json-schema-2020-12-preservation": echo_schema,
}


def run(door: Door, scenario: str, url: str, context: Json) -> None:
    """Do the scenario.

    Raises:
        UnexpectedError: the daemon answered otherwise than the scenario needs.
    """
    definition = definition_of(scenario, url, context)
    try:
        attached = door.act("attach", server=definition)
        wanted = REFUSED.get(scenario)
        if attached.get("code") != wanted or (wanted is None and attached.get("status") != 201):
            raise UnexpectedError(f"attach: {attached}")
        if wanted is None:
            STEPS.get(scenario, call_protected)(door, context)
    finally:
        door.act("detach", name=SERVER)


def main() -> None:
    """Do the scenario that the environment names; exit 1 and say why where it went wrong."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    workspace = f"{re.sub('[^a-z0-9]+', '-', scenario)}-{os.getpid()}"
    headers = {"Authorization": f"Bearer {os.environ['CONFORMANCE_TOKEN']}"}
    daemon = os.environ["CONFORMANCE_DAEMON"]
    with httpx2.Client(base_url=daemon, headers=headers, timeout=50, trust_env=False) as client:
        try:
            run(Door(client, workspace), scenario, sys.argv[-1], context)
        except UnexpectedError as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
