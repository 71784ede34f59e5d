"""No secret is at rest or in anything the daemon itself writes. SPEC §references, §state, §security."""

import base64
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.otlp_collector import Collector, otlp_collector
from tests.support.peers.programs import http_definition, scripted_definition, stdio_definition
from tests.support.secrets_scan import forms, leaks, leaks_in

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

SECRETS = {
    "ENV_SECRET": "canary/env+secret=7f3a",
    "ARG_SECRET": 'canary arg "secret" 8e2b',
    "HEADER_SECRET": "canary-header-secret-9d1c",
    "BEARER_SECRET": "canary-bearer-secret-0c4d",
    "STDERR_SECRET": "canary-stderr-secret-1b5e",
}
COLLECTOR = {"of a pair": "canary-collector-secret-6c0b", "without a name": "canary-nameless-secret-5d2a"}
OPERATOR = "canary-operator-token-2a6f"


@pytest.mark.parametrize("offset", range(3))
def test_the_search_finds_a_secret_in_every_form(offset: int) -> None:
    secret = SECRETS["ENV_SECRET"]
    found = leaks_in({"S": secret}, base64.b64encode(b"x" * offset + secret.encode() + b"yz"), where="here")
    assert found == [f"S (base64 at offset {offset % 3}) in here"]
    assert all(leaks_in({"S": secret}, shape, where="here") for shape in forms(secret).values())


@pytest.fixture
def collector() -> Generator[Collector]:
    """A collector of spans."""
    with otlp_collector() as collector:
        yield collector


@pytest.mark.spec("references", "state", "security", "observe")
async def test_nothing_the_daemon_writes_holds_a_secret(
    new_daemon: Callable[..., Daemon], sdk_url: str, collector: Collector
) -> None:
    daemon = new_daemon(
        {
            **SECRETS,
            "PLURNK_LOG_LEVEL": "debug",
            "PLURNK_LOG_FORMAT": "json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_HEADERS": ",".join(
                [f"api-key={COLLECTOR['of a pair']}", COLLECTOR["without a name"]]
            ),
        }
    )
    daemon.token = OPERATOR
    await daemon.start()
    answers: list[Any] = []

    async def act(kind: str, **params: Any) -> None:
        response = await daemon.post("one", kind, **params)
        answers.append(response.text)
        answers.append(await daemon.run_action("one", kind, **params))

    loud = 'echo "$LEAK" >&2; printf %s "$LEAK" | base64 >&2; echo "$0" >&2; exit 3'
    definitions = [
        stdio_definition("local", env={"GIVEN": "${ENV_SECRET}"}, read=["variable"]),
        http_definition(
            "web",
            sdk_url,
            headers={"X-Key": "${HEADER_SECRET}"},
            authorization={"type": "bearer", "token": "${BEARER_SECRET}"},
        ),
        scripted_definition("arguments", "good", args=["${ARG_SECRET}"]),
        {
            "name": "loud",
            "transport": "stdio",
            "command": "sh",
            "args": ["-c", loud, "${ARG_SECRET}"],
            "env": {"LEAK": "${STDERR_SECRET}"},
        },
        {"name": "absent", "transport": "stdio", "command": "/nonexistent", "args": ["${ARG_SECRET}"]},
        http_definition("refused", "http://127.0.0.1:1/mcp", headers={"X-Key": "${HEADER_SECRET}"}),
        http_definition("split", sdk_url, headers={"X-Key": "${ARG_SECRET}\r\n"}),
    ]
    for definition in definitions:
        await act("workspace.mcp.attach", server=definition)
    assert [
        name for name, server in (await daemon.servers("one")).items() if server["state"] == "connected"
    ] == [
        "local",
        "web",
    ]
    for kind in ("list", "tools"):
        await act(f"workspace.mcp.{kind}")
    await act("workspace.mcp.reconnect", name="web")
    # What a peer answers goes to its caller verbatim: the one place where the value may be seen.
    seen = await daemon.call_text("one", "local", "variable", name="GIVEN")
    assert seen == SECRETS["ENV_SECRET"]
    async with daemon.client() as client:
        answers.append((await client.get("/metrics")).text)
    assert await daemon.stop() == 0
    await daemon.start()
    await act("workspace.mcp.list")
    secrets = {**SECRETS, **COLLECTOR, "operator's token": OPERATOR}
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []
    assert leaks_in(secrets, str(answers).encode(), where="the answers") == []
    assert await daemon.stop() == 0
    assert leaks(secrets, [daemon.home, daemon.log_file]) == []
    assert {"workspace.mcp.attach", "operation", "tools/call"} <= {span.name for span in collector.spans()}
    assert collector.headers[0]["api-key"] == COLLECTOR["of a pair"]
    assert leaks_in(secrets, b"".join(collector.bodies), where="the spans") == []


@pytest.mark.spec("security")
async def test_the_token_is_not_printed_and_each_door_but_health_asks_for_it(daemon: Daemon) -> None:
    assert daemon.token not in daemon.log
    async with daemon.client() as client:
        client.headers.pop("Authorization")
        assert (await client.get("/healthz")).status_code == 200
        for method, path in (
            ("POST", "/"),
            ("POST", "/agui"),
            ("GET", "/v1/workspaces"),
            ("GET", "/metrics"),
            ("GET", "/nothing"),
        ):
            response = await client.request(method, path)
            assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
