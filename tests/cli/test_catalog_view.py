"""What a person sees of tools, contents, messages, indexes and completions. SPEC §cli."""

import io

import pytest
from rich.console import Console

from app.cli.catalog_view import show_completion, show_read, show_tools
from app.cli.screen import Screen
from app.core.json_value import JsonObject

pytestmark = pytest.mark.spec("cli")


def screens(width: int = 80) -> tuple[Screen, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Screen(Console(file=out, width=width), Console(file=err, width=width)), out, err


@pytest.mark.parametrize("width", [30, 50, 80])
def test_the_table_of_tools_fits_the_terminal(width: int) -> None:
    screen, out, _ = screens(width)
    row: JsonObject = {
        "server": "time",
        "tool": "now",
        "effect": "read",
        "description": "word\x1b " * 40,
    }
    show_tools(screen, {"tools": [row]}, is_detailed=False)
    lines = out.getvalue().splitlines()
    lines = [line for line in lines if line.strip()]
    assert max(map(len, lines)) <= width
    assert "\x1b" not in out.getvalue()
    [heading, _, row_shown] = [line.strip().split(maxsplit=3) for line in lines]
    assert heading == ["server", "tool", "effect", "description"][: 3 if width == 30 else 4]
    assert row_shown[:3] == ["time", "now", "read"]
    assert len(heading) == 3 or row_shown[3].endswith("…")


@pytest.mark.parametrize(
    "result, shown",
    [
        ({"contents": [{"uri": "u://x", "text": "a\x1b[2J"}]}, "a\\x1b[2J\n"),
        (
            {"contents": [{"uri": "u://x", "mimeType": "image/png", "blob": "AAAA"}]},
            "[u://x image/png, about 3 bytes; --json has it]\n",
        ),
        (
            {"messages": [{"role": "user", "content": {"type": "text", "text": "hi [b]"}}]},
            "user:\nhi [b]\n",
        ),
        ({"prompts": []}, "It lists no prompts.\n"),
        ({"resources": [], "resourceTemplates": []}, "It lists no resources.\n"),
        ({"other": 1}, '{\n  "other": 1\n}\n'),
    ],
)
def test_a_read_is_shown_as_text(result: JsonObject, shown: str) -> None:
    screen, out, _ = screens()
    show_read(screen, result)
    assert out.getvalue() == shown


def test_an_index_of_prompts_names_the_arguments() -> None:
    screen, out, _ = screens()
    arguments: JsonObject = {"arguments": [{"name": "who", "required": True}, {"name": "tone"}]}
    show_read(screen, {"prompts": [{"name": "greet", "description": "Hello.", **arguments}]})
    assert out.getvalue().strip().splitlines()[-1].split(maxsplit=3) == ["greet", "who,", "tone?", "Hello."]


@pytest.mark.parametrize(
    "completion, out_text, err_text",
    [
        ({"values": ["a", "b\x1b"]}, "a\nb\\x1b\n", ""),
        ({"values": ["a"], "total": 1}, "a\n", ""),
        ({"values": ["a"], "total": 7}, "a\n", "There are 7 in all.\n"),
        ({"values": [], "hasMore": True}, "", "There are more.\n"),
    ],
)
def test_completions_come_one_a_line(completion: JsonObject, out_text: str, err_text: str) -> None:
    screen, out, err = screens()
    show_completion(screen, {"completion": completion})
    assert (out.getvalue(), err.getvalue()) == (out_text, err_text)
