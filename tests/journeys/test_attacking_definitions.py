"""What a definition is used for by who may attach: secrets, processes, addresses, the log. SPEC §security."""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.peers.programs import SCRIPTED, http_definition, scripted_definition, stdio_definition
from tests.support.scripted_http import Reply, ScriptedHttp, scripted_http
from tests.support.secrets_scan import leaks_in

pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("security", "references")]

SECRETS = {"THEIR_SECRET": "canary-their-secret-4f1e", "LENT_KEY": "canary-lent-key-77aa"}
REAL = Path(sys.executable).resolve()
OAUTH = {"type": "oauth", "redirectUrl": "http://127.0.0.1:7/c", "clientId": "c"}


@pytest.fixture(scope="module")
async def sink() -> AsyncGenerator[ScriptedHttp]:
    """The attacker's own server, which keeps what it is sent."""
    async with scripted_http() as peer:
        yield peer


@pytest.fixture(scope="module")
async def attacked(tmp_path_factory: pytest.TempPathFactory, sink: ScriptedHttp) -> AsyncGenerator[Daemon]:
    """A daemon that lends some names, starts one executable and has a default with a secret."""
    daemon = Daemon(
        tmp_path_factory.mktemp("attacked"),
        {
            **SECRETS,
            "PLURNK_REFERENCES": '["LENT_*"]',
            "PLURNK_STDIO_COMMANDS": f'["{sys.executable}"]',
            "PLURNK_MCP_THEIRS": f"{sink.origin}/theirs",
            "PLURNK_MCP_THEIRS_BEARER": "${THEIR_SECRET}",
        },
    )
    try:
        yield await daemon.start()
    finally:
        daemon.close()


def stealing(url: str) -> dict[str, dict[str, Any]]:
    """Return every way to name a secret that is not lent."""
    theirs = "${THEIR_SECRET}"
    fields: dict[str, dict[str, Any]] = {
        "header": {"headers": {"X-Steal": theirs}},
        "header beside a lent one": {"headers": {"X-Steal": f"${{LENT_KEY}}{theirs}"}},
        "header after an escape": {"headers": {"X-Steal": f"$${{LENT_KEY}}{theirs}"}},
        "bearer": {"authorization": {"type": "bearer", "token": theirs}},
        "client secret": {"authorization": {**OAUTH, "clientSecret": theirs}},
        "client credentials": {
            "authorization": {"type": "client-credentials", "clientId": "c", "clientSecret": theirs}
        },
        "another case": {"headers": {"X-Steal": "${their_secret}"}},
        "a longer name": {"headers": {"X-Steal": "${XLENT_KEY}"}},
        "the operator's token": {"headers": {"X-Steal": "${PLURNK_TOKEN}"}},
    }
    stdio: dict[str, dict[str, Any]] = {
        "argument": {"args": [str(SCRIPTED), "stdio", theirs]},
        "variable": {"env": {"X": theirs}},
        "directory": {"cwd": f"/srv/{theirs}"},
    }
    return {
        **{name: http_definition("s", url, **members) for name, members in fields.items()},
        **{name: {**scripted_definition("s"), **members} for name, members in stdio.items()},
    }


async def test_a_secret_that_is_not_lent_leaves_by_no_way(
    attacked: Daemon, sink: ScriptedHttp, workspace: str
) -> None:
    assert set(await attacked.servers(workspace)) == {"theirs"}
    before = len(sink.seen)
    answers: list[str] = []
    for name, definition in stealing(sink.url).items():
        answer = await attacked.post(workspace, "workspace.mcp.attach", server=definition)
        answers.append(answer.text)
        assert (answer.status_code, answer.json()["code"]) == (403, "reference-refused"), name
    assert len(sink.seen) == before, "nothing was even asked of the attacker's server"
    # A workspace's own definition in the place of a default gets nothing of the default.
    own = http_definition("theirs", sink.url, headers={"X-Own": "$${THEIR_SECRET} ${LENT_KEY}"})
    answers.append((await attacked.post(workspace, "workspace.mcp.replace", server=own)).text)
    seen = [each for each in sink.seen[before:] if each.path != "/theirs"]
    assert seen
    assert {each.headers["x-own"] for each in seen} == {"${THEIR_SECRET} " + SECRETS["LENT_KEY"]}
    assert not any("authorization" in each.headers for each in seen)
    # A child is given the few names, and what was lent to it.
    child = scripted_definition("child", env={"GIVEN": "${LENT_KEY}"}, read=["variable"])
    await attacked.attach(workspace, child)
    given = {"GIVEN": SECRETS["LENT_KEY"], "THEIR_SECRET": "(unset)", "PLURNK_TOKEN": "(unset)"}
    for name, value in given.items():
        assert await attacked.call_text(workspace, "child", "variable", name=name) == value
    assert leaks_in(SECRETS, "".join(answers).encode(), where="the answers") == []
    assert leaks_in(SECRETS, attacked.log_file.read_bytes(), where="the log") == []


async def test_nothing_starts_but_what_is_listed(attacked: Daemon, workspace: str, tmp_path: Path) -> None:
    good = str(tmp_path / "alias")
    (tmp_path / "python").symlink_to("/bin/sh")
    (tmp_path / "alias").symlink_to(REAL)
    marker = tmp_path / "started"
    script = ["-c", f"touch {marker}"]
    tried: list[dict[str, Any]] = [
        {"command": "/bin/sh"},
        {"command": "sh"},
        {"command": str(tmp_path / "python")},
        {"command": "./python", "cwd": str(tmp_path)},
        {"command": f"{sys.executable}/../sh"},
        {"command": f"{sys.executable} -c x"},
        {"command": sys.executable, "env": {"PATH": str(tmp_path)}},
        {"command": sys.executable, "env": {"LD_PRELOAD": str(marker)}},
        {"command": sys.executable, "env": {"HOME": str(tmp_path)}},
    ]
    for members in tried:
        definition = {"name": "s", "transport": "stdio", "args": script, **members}
        answer = await attacked.post(workspace, "workspace.mcp.attach", server=definition)
        assert (answer.status_code, answer.json()["code"]) == (403, "stdio-refused"), members
    assert not marker.exists()
    # Another way to a listed file starts the listed file: that one alone finds what is installed beside it.
    await attacked.attach(workspace, {**stdio_definition("s"), "command": good})


FORBIDDEN = """
http://169.254.169.254/latest http://[fd00:ec2::254]/ http://[fd00:ec2::23]/ http://[::ffff:a9fe:a9fe]/
http://2852039166/ http://0xa9.0xfe.0xa9.0xfe/ http://0251.0376.0251.0376/ http://169.254.43518/
http://[64:ff9b::a9fe:a9fe]/ http://[fe80::1]/ http://168.63.129.16/ http://169.254.169.254./
http://\uff11\uff16\uff19.254.169.254/ http://\u2460\u2465\u2468.254.169.254/ http://169.254.169.254/%2e%2e
""".split()  # noqa: SIM905 a list of them is four times as long
MALFORMED = r"""
http://a@169.254.169.254/ http://169.254.169.254#@example.com/ http:\\169.254.169.254/ file:///etc/passwd
http://169.254.169.254%00.example.com/ gopher://127.0.0.1/ http:///x http://[::1%25lo]/ //127.0.0.1/x
""".split()  # noqa: SIM905 a list of them is four times as long


async def test_no_url_or_redirect_leads_to_an_address_that_is_guarded(
    attacked: Daemon, workspace: str
) -> None:
    for url in (*FORBIDDEN, *MALFORMED):
        answer = await attacked.post(workspace, "workspace.mcp.attach", server=http_definition("s", url))
        expected = (403, "address-refused") if url in FORBIDDEN else (400, "definition-invalid")
        assert (answer.status_code, answer.json()["code"]) == expected, url
    async with scripted_http() as inner:
        for status in (301, 302, 303, 307, 308):
            away = Reply(status, {"Location": inner.url})
            async with scripted_http({"server/discover": away}) as outer:
                answer = await attacked.post(
                    workspace, "workspace.mcp.attach", server=http_definition("s", outer.url)
                )
            assert answer.json()["code"] == "server-unavailable", status
        assert inner.connections == 0


async def test_nothing_that_a_client_or_a_server_writes_makes_a_line_of_the_log(
    attacked: Daemon, workspace: str
) -> None:
    forged = "x\r\n2026-11-30 [info] forged\x1b[31m\u2028\x85"
    await attacked.act(workspace, forged)
    await attacked.act(workspace, "workspace.mcp.call", server=forged, tool=forged)
    await attacked.act(workspace, "workspace.mcp.attach", server={"name": forged, forged: forged})
    loud = ["-c", f"import sys; print({forged!r}); print({forged!r}, file=sys.stderr); sys.exit(3)"]
    await attacked.act(workspace, "workspace.mcp.attach", server={**scripted_definition("s"), "args": loud})
    async with attacked.client() as client:
        body = run_input(workspace, {"kind": "workspace.mcp.list"}, **{forged: 1, "threadId": forged})
        await client.post("/", json=body)
        await client.get("/v1/workspaces/w%0d%0aforged/servers", headers={"traceparent": "00-forged"})
        refused = await client.get("/", headers={"Host": "forged.example", "Origin": "http://forged.example"})
    assert refused.status_code == 403
    assert "run-input-members-ignored" in attacked.log
    assert "\x1b" not in attacked.log
    assert not [
        line for line in attacked.log.splitlines() if "[info] forged" in line and line.index("forged") < 32
    ]
