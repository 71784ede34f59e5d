"""The README's examples, executed as written against a daemon of their own, and its tables against the code."""

import os
import re
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

README = (Path(__file__).parents[2] / "README.md").read_text()
ADDRESS = "http://127.0.0.1:3044"


def blocks(language: str) -> list[str]:
    """Return the blocks of one language that the README marks as executed."""
    return re.findall(rf"<!-- executed -->\n```{language}\n(.*?)```", README, flags=re.DOTALL)


def section(title: str) -> str:
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


async def run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Return what a command that must succeed prints."""
    with anyio.fail_after(60):
        done = await anyio.run_process(command, cwd=directory, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.spec("cli", "agui")
async def test_the_examples_of_the_readme_do_what_they_say(
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
        }
        printed = ""
        attach, curl, scrape = blocks("sh")
        for script in (attach, curl, scrape):
            printed += await run(["bash", "-euc", script.replace(ADDRESS, daemon.url)], tmp_path, environment)
        assert "attached workshop" in printed
        assert "square_metres: 1.2" in printed
        assert "One box of oak, ready to carry home." in printed
        assert '"isError":false' in printed
        assert 'plurnk_actions_total{kind="workspace.mcp.attach",outcome="ok"} 1.0' in printed

        (typescript,) = blocks("ts")
        assert request.config.cache is not None
        program = installed(request.config.cache.mkdir("official-client")) / "readme.mts"
        program.write_text(typescript.replace(f"{ADDRESS}/", f"{daemon.url}/"))
        listed, called = (await run([str(NODE), str(program)], tmp_path, environment)).splitlines()
        assert '"name":"workshop"' in listed
        assert "One box of oak, ready to carry home." in called
    finally:
        await daemon.stop()


@pytest.mark.spec("actions")
def test_the_action_table_of_the_readme_is_the_table_of_the_code() -> None:
    rows = re.findall(
        r"^\| `(workspace\.mcp\.[a-z.]+)` \| (.*?) \|", section("From a script"), flags=re.MULTILINE
    )
    assert [kind for kind, _ in rows] == list(ACTIONS)
    for kind, parameters in rows:
        assert re.findall(r"`(\w+)`", parameters) == list(ACTIONS[kind].params.model_fields), kind


@pytest.mark.spec("defaults")
def test_the_defaults_of_the_readme_are_good_ones(tmp_path: Path) -> None:
    (example,) = re.findall(r"```\n(PLURNK_MCP_.*?)```", section("For operators"), flags=re.DOTALL)
    (tmp_path / ".env").write_text(example)
    configuration = read({"DOCS_TOKEN": "a-token-of-the-docs"}, tmp_path)
    assert sorted(configuration.defaults) == ["docs", "git"]
    assert configuration.warnings == ()
    (exposed,) = re.findall(r"```\n(PLURNK_HOST.*?)```", section("For operators"), flags=re.DOTALL)
    (tmp_path / ".env").write_text(exposed)
    configuration = read({}, tmp_path)
    assert operator_token(configuration.settings.token, Home(tmp_path)) == "a-long-secret-of-your-own"
    assert configuration.warnings == ()
