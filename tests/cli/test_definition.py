"""How the words of ``attach`` become a server definition. SPEC §cli, §definition, §security."""

from pathlib import Path

import pytest

from app.cli.definition import DefinitionWords, build
from app.cli.failures import UsageFault
from app.core.json_value import JsonObject

HERE = Path("/somewhere")


def read_nothing(file: str) -> bytes:
    raise AssertionError(f"{file} is not asked for")


def built(words: DefinitionWords) -> JsonObject:
    return build(words, directory=HERE, read=read_nothing)


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "words, definition",
    [
        (
            DefinitionWords("time", ["python", "-m", "mcp_server_time"]),
            {"name": "time", "transport": "stdio", "command": "python", "args": ["-m", "mcp_server_time"]},
        ),
        (DefinitionWords("t", ["server"]), {"name": "t", "transport": "stdio", "command": "server"}),
        (
            DefinitionWords("t", ["./run me", "--url", "https://x"]),
            {
                "name": "t",
                "transport": "stdio",
                "command": "/somewhere/run me",
                "args": ["--url", "https://x"],
            },
        ),
        (DefinitionWords("t", ["/bin/x"]), {"name": "t", "transport": "stdio", "command": "/bin/x"}),
        (
            DefinitionWords("docs", ["https://docs.example/mcp"]),
            {"name": "docs", "transport": "http", "url": "https://docs.example/mcp"},
        ),
        (
            DefinitionWords(
                "docs", ["HTTP://docs.example"], headers=["X-Key: ${KEY}", "X-B:c:d"], bearer="${T}"
            ),
            {
                "name": "docs",
                "transport": "http",
                "url": "HTTP://docs.example",
                "headers": {"X-Key": "${KEY}", "X-B": "c:d"},
                "authorization": {"type": "bearer", "token": "${T}"},
            },
        ),
        (
            DefinitionWords("docs", ["https://docs.example/mcp"], sign_in=True),
            {
                "name": "docs",
                "transport": "http",
                "url": "https://docs.example/mcp",
                "authorization": {"type": "oauth", "redirectUrl": "http://127.0.0.1:7777/callback"},
            },
        ),
        (
            DefinitionWords(
                "t", ["x"], env=["A=b=c", "TOKEN", "E="], cwd="work", tools=["a,b", "c"], read=["a"]
            ),
            {
                "name": "t",
                "transport": "stdio",
                "command": "x",
                "cwd": "/somewhere/work",
                "env": {"A": "b=c", "TOKEN": "${TOKEN}", "E": ""},
                "tools": ["a", "b", "c"],
                "read": ["a"],
            },
        ),
        (
            DefinitionWords("t", ["x"], cwd="${WORK}/a", tools=[""]),
            {"name": "t", "transport": "stdio", "command": "x", "cwd": "${WORK}/a", "tools": []},
        ),
    ],
)
def test_one_line_says_a_whole_definition(words: DefinitionWords, definition: JsonObject) -> None:
    assert built(words) == definition


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "words",
    [
        DefinitionWords(),
        DefinitionWords("t"),
        DefinitionWords("t", ["https://x"], env=["A=b"]),
        DefinitionWords("t", ["https://x"], cwd="/"),
        DefinitionWords("t", ["x"], headers=["A: b"]),
        DefinitionWords("t", ["x"], bearer="${T}"),
        DefinitionWords("t", ["x"], env=["=b"]),
        DefinitionWords("t", ["https://x"], headers=["nothing"]),
        DefinitionWords("t", ["https://x"], headers=[": b"]),
        DefinitionWords("t", ["x"], sign_in=True),
        DefinitionWords("t", ["https://x"], bearer="${T}", sign_in=True),
        DefinitionWords("t", sign_in=True, file="f"),
        DefinitionWords("t", ["x"], file="f"),
        DefinitionWords(env=["A=b"], file="f"),
    ],
)
def test_words_that_contradict_each_other_are_a_usage_fault(words: DefinitionWords) -> None:
    with pytest.raises(UsageFault):
        built(words)


@pytest.mark.spec("security")
@pytest.mark.parametrize("bearer", ["ghp_canary-secret-token", "$TOKEN", "${TOKEN}x", "${1}", ""])
def test_a_literal_token_is_refused_and_not_repeated(bearer: str) -> None:
    with pytest.raises(UsageFault) as refused:
        built(DefinitionWords("t", ["https://x"], bearer=bearer))
    said = refused.value.what + refused.value.remedy
    assert bearer == "" or bearer not in said


@pytest.mark.spec("cli")
def test_a_file_holds_the_whole_definition() -> None:
    content = b'{"transport": "stdio", "command": "x"}'

    def read(file: str) -> bytes:
        assert file == "-"
        return content

    expected = {"transport": "stdio", "command": "x"}
    assert build(DefinitionWords(file="-"), directory=HERE, read=read) == expected
    assert build(DefinitionWords("t", file="-"), directory=HERE, read=read) == {**expected, "name": "t"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"name": "other"}'])
def test_a_file_without_this_definition_is_a_usage_fault(content: bytes) -> None:
    with pytest.raises(UsageFault):
        build(DefinitionWords("t", file="f"), directory=HERE, read=lambda _file: content)


def test_a_file_that_cannot_be_read_is_a_usage_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageFault):
        build(
            DefinitionWords(file=str(tmp_path / "absent")),
            directory=HERE,
            read=lambda file: Path(file).read_bytes(),
        )
