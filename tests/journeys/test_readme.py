"""The examples of README and docs, executed as written, and the tables of the README against the code. SPEC §cli."""

import configparser
import json
import os
import re
import shutil
import sys
from pathlib import Path

import anyio
import pytest

from app.actions.table import ACTIONS
from app.configuration import read
from app.home import Home
from app.tokens import operator_token
from tests.support.daemon import Daemon
from tests.support.official_client import NODE, installed

pytestmark = pytest.mark.timeout(400)  # npm may have to give up first, and says why

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CLIENTS = (ROOT / "docs" / "agui-clients.md").read_text()
OPERATORS = (ROOT / "docs" / "operators.md").read_text()
ADDRESS = "http://127.0.0.1:3044"
BUILT = "One box of oak, ready to carry home."


def blocks(language: str, page: str = README) -> list[str]:
    """Return the blocks of one language that the page marks as executed."""
    return re.findall(rf"<!-- executed -->\n```{language}\n(.*?)```", page, flags=re.DOTALL)


def section(title: str, page: str = README) -> str:
    return page.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


async def run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Return what a command that must succeed prints."""
    with anyio.fail_after(60):
        done = await anyio.run_process(command, cwd=directory, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.spec("cli", "agui")
async def test_the_examples_of_the_documents_do_what_they_say(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    daemon = Daemon(tmp_path)
    await daemon.start()
    try:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PLURNK_HOME": str(daemon.home),
            "PLURNK_TOKEN": daemon.token,
            "WORKSHOP": "",
        }
        printed = ""
        attach, curl = blocks("sh")
        (scrape,) = blocks("sh", OPERATORS)
        for script in (attach, curl, scrape):
            printed += await run(["bash", "-euc", script.replace(ADDRESS, daemon.url)], tmp_path, environment)
        assert "attached workshop" in printed
        assert "square_metres: 1.2" in printed
        assert BUILT in printed
        assert '"isError":false' in printed
        assert 'plurnk_actions_total{kind="workspace.mcp.attach",outcome="ok"} 1.0' in printed

        assert request.config.cache is not None
        place = installed(request.config.cache.mkdir("official-client"))
        (first,) = blocks("ts")
        listed, called = await example(first, place / "readme.mts", [str(NODE)], daemon, environment)
        assert '"name":"workshop"' in listed
        assert BUILT in called

        (exports,) = blocks("sh", CLIENTS)
        given = await run(["bash", "-euc", f"{exports}\necho $PLURNK_TOKEN $WORKSHOP"], tmp_path, environment)
        token, environment["WORKSHOP"] = given.split()
        assert token == daemon.token
        (four,), (python,) = blocks("ts", CLIENTS), blocks("python", CLIENTS)
        for text, program, command in (
            (four, place / "four.mts", [str(NODE)]),
            (python, tmp_path / "four.py", [sys.executable]),
        ):
            attached, listed, called = await example(text, program, command, daemon, environment)
            assert json.loads(attached)["result"]["status"] == 201
            assert [server["name"] for server in json.loads(listed)["result"]["servers"]] == ["workshop"]
            assert BUILT in called
        assert sorted(await workspaces(daemon)) == ["default", "python", "typescript"]
    finally:
        await daemon.stop()


async def example(
    text: str, program: Path, command: list[str], daemon: Daemon, environment: dict[str, str]
) -> list[str]:
    """Return the lines that a program of the documents prints, run as written against this daemon."""
    await anyio.Path(program).write_text(text.replace(f"{ADDRESS}/", f"{daemon.url}/"))
    return (await run([*command, str(program)], program.parent, environment)).splitlines()


async def workspaces(daemon: Daemon) -> list[str]:
    async with daemon.client() as client:
        return (await client.get("/v1/workspaces")).json()["workspaces"]


@pytest.mark.spec("cli", "shutdown")
async def test_the_unit_of_the_documents_starts_the_daemon(tmp_path: Path) -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", OPERATORS, flags=re.DOTALL)
    program = Path(sys.executable).parent / "plurnk-mcpd"
    unit = tmp_path / "plurnk-mcpd.service"
    unit.write_text(text.replace("/opt/plurnk-mcpd/bin/plurnk-mcpd", str(program)))
    if verify := shutil.which("systemd-analyze"):
        done = await anyio.run_process([verify, "verify", str(unit)], check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    settings = configparser.ConfigParser(interpolation=None, strict=True)
    settings.read_string(unit.read_text())
    service = settings["Service"]
    state = f"/var/lib/{service['StateDirectory']}"
    given = dict(word.split("=", 1) for word in service["Environment"].split())
    assert given == {"HOME": state, "PLURNK_HOME": f"{state}/home"}
    directory = tmp_path / "state"
    directory.mkdir(mode=int(service["StateDirectoryMode"], 8))
    command = service["ExecStart"].split()
    assert command[1:] == ["serve"]
    daemon = Daemon(directory, {"HOME": str(directory)}, program=(command[0],))
    try:
        await daemon.start()
        assert await daemon.stop() == 0
    finally:
        daemon.close()


@pytest.mark.spec("actions")
def test_the_action_table_of_the_readme_is_the_table_of_the_code() -> None:
    rows = re.findall(
        r"^\| `(workspace\.mcp\.[a-z.]+)` \| (.*?) \|", section("From a script"), flags=re.MULTILINE
    )
    assert [kind for kind, _ in rows] == list(ACTIONS)
    for kind, parameters in rows:
        assert re.findall(r"`(\w+)`", parameters) == list(ACTIONS[kind].params.model_fields), kind


@pytest.mark.spec("defaults")
def test_the_settings_of_the_documents_are_good_ones(tmp_path: Path) -> None:
    (example,) = re.findall(r"```\n(PLURNK_MCP_.*?)```", section("For operators"), flags=re.DOTALL)
    (tmp_path / ".env").write_text(example)
    configuration = read({"DOCS_TOKEN": "a-token-of-the-docs"}, tmp_path)
    assert sorted(configuration.defaults) == ["docs", "git"]
    assert configuration.warnings == ()
    (files,) = re.findall(r"```\n(PLURNK_MCP_.*?)```", OPERATORS, flags=re.DOTALL)
    (tmp_path / ".env").write_text(files)
    configuration = read({}, tmp_path)
    assert sorted(configuration.defaults) == ["files", "search"]
    assert configuration.warnings == ()
    (exposed,) = re.findall(r"```\n(PLURNK_HOST.*?)```", OPERATORS, flags=re.DOTALL)
    (tmp_path / ".env").write_text(exposed)
    configuration = read({}, tmp_path)
    assert operator_token(configuration.settings.token, Home(tmp_path)) == "a-long-secret-of-your-own"
    assert configuration.warnings == ()
