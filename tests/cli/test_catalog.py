"""``tools``, ``read`` and ``complete`` against a running daemon. SPEC §cli, §addresses."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import anyio
import pytest

from app.cli.catalog import ReadWords, address_of, pairs
from app.cli.failures import UsageFault
from tests.support.daemon import Daemon
from tests.support.peers.programs import stdio_definition

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def attached(daemon: Daemon) -> str:
    """The name of an attached server with tools, resources and prompts."""
    definition = stdio_definition("notes", read=["count"], tools=["count", "echo"])
    anyio.run(daemon.attach, "default", definition)
    return "notes"


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    "given, address",
    [
        (ReadWords("docs"), "docs:///resources"),
        (ReadWords("docs:///prompts"), "docs:///prompts"),
        (ReadWords("worker://plurnk/docs/docs.md"), "worker://plurnk/docs/docs.md"),
        (ReadWords("docs", ["file:///a b"]), "docs:///resources/file%3A%2F%2F%2Fa%20b"),
        (ReadWords("docs", wants_prompts=True), "docs:///prompts"),
        (ReadWords("docs", prompt="greet"), "docs:///prompts/greet"),
        (
            ReadWords("docs", ["name=A&B", "tone="], prompt="gr/eet"),
            "docs:///prompts/gr%2Feet?name=A%26B&tone=",
        ),
        (ReadWords("docs", wants_document=True), "worker://plurnk/docs/docs.md"),
    ],
)
def test_words_make_an_address(given: ReadWords, address: str) -> None:
    assert address_of(given) == address


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "given",
    [
        ReadWords("docs", ["a", "b"]),
        ReadWords("docs", ["a"], wants_prompts=True),
        ReadWords("docs", ["a"], prompt="p"),
        ReadWords("docs", ["a=b", "a=c"], prompt="p"),
        ReadWords("docs", prompt="p", wants_document=True),
        ReadWords("docs:///prompts", ["a"]),
        ReadWords("docs:///prompts", wants_document=True),
    ],
)
def test_words_that_contradict_each_other_are_refused(given: ReadWords) -> None:
    with pytest.raises(UsageFault):
        address_of(given)


def test_pairs_keep_what_follows_the_first_equals_sign() -> None:
    assert pairs(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


@pytest.mark.spec("cli")
def test_the_tools_are_a_table_and_those_of_one_server_have_their_signatures(
    plurnk: Run, attached: str
) -> None:
    table = plurnk("tools")
    assert (table.returncode, table.stderr) == (0, "")
    rows = [line.strip().split(maxsplit=3) for line in table.stdout.splitlines() if line.strip()]
    assert rows[0] == ["server", "tool", "effect", "description"]
    assert rows[2:] == [
        ["notes", "echo", "host", "Return the text as it came."],
        ["notes", "count", "read", "Count to ``steps``, reporting each one."],
    ]
    detailed = plurnk("tools", attached)
    assert detailed.stdout.splitlines() == [
        "echo  asks first",
        '  {"text": string}',
        "  Return the text as it came.",
        "count  runs at once",
        '  {"steps": integer}',
        "  Count to ``steps``, reporting each one.",
    ]
    document = json.loads(plurnk("tools", attached, "--schemas", "--json").stdout)
    assert document["result"]["tools"][1]["inputSchema"]["required"] == ["steps"]
    assert plurnk("tools", "-w", "nobody").stdout == "No tool is enabled.\n"


@pytest.mark.spec("cli", "addresses")
def test_what_a_server_offers_is_read(plurnk: Run, attached: str) -> None:
    index = plurnk("read", attached)
    assert (index.returncode, index.stderr) == (0, "")
    assert [line.split()[0] for line in index.stdout.splitlines() if "memo:" in line] == [
        "memo://welcome",
        "memo://people/{name}",
    ]
    assert plurnk("read", attached, "memo://people/Ada L").stdout == "memo about Ada L\n"
    assert "greet" in plurnk("read", attached, "--prompts").stdout
    prompt = plurnk("read", attached, "--prompt", "greet", "name=Ada", "--json")
    assert json.loads(prompt.stdout)["result"]["messages"][0]["role"] == "user"
    shown = plurnk("read", attached, "--prompt", "greet", "name=Ada").stdout
    assert shown.startswith("user:\n")
    assert "Ada" in shown
    assert "# " in plurnk("read", attached, "--document").stdout


@pytest.mark.spec("cli", "actions")
def test_an_argument_is_completed(plurnk: Run, attached: str) -> None:
    done = plurnk("complete", attached, "--prompt", "greet", "name=a")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["ada", "alan"], "")
    template = plurnk("complete", attached, "--resource", "memo://people/{name}", "name=gr", "--json")
    assert json.loads(template.stdout)["result"]["completion"]["values"] == ["grace"]


@pytest.mark.spec("cli", "problems")
@pytest.mark.parametrize(
    "words, status, says",
    [
        (("tools", "absent"), 3, "plurnk-mcpd list"),
        (("read", "absent"), 3, "plurnk-mcpd list"),
        (("read", "notes", "memo://absent"), 4, "remote-error"),
        (("complete", "notes", "name=a"), 2, "--prompt"),
        (("complete", "notes", "name=a", "--prompt", "x", "--resource", "y"), 2, "--prompt"),
    ],
)
def test_what_cannot_be_had_is_told(
    plurnk: Run, attached: str, words: tuple[str, ...], status: int, says: str
) -> None:
    done = plurnk(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr
