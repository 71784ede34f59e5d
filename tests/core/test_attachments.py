"""The durable map's records. SPEC §state, §effective."""

import pytest

from app.core.attachments import Attached, parse_record
from app.core.definitions import parse_definition
from app.core.problems import DefinitionInvalid

TEXT = '{"name":"p","transport":"http","url":"http://h/mcp","headers":{"X":"${T}"}}'


@pytest.mark.spec("state")
def test_a_record_holds_the_definition_as_sent() -> None:
    expected = parse_definition(
        {"name": "p", "transport": "http", "url": "http://h/mcp", "headers": {"X": "${T}"}}
    )
    assert parse_record("p", Attached(TEXT)) == expected


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "text, pointers",
    [
        ("", [""]),
        ("{", [""]),
        ("[" * 5000, [""]),
        ("null", [""]),
        ('{"name":"p","transport":"http","url":"http://h/mcp","future":1}', ["/future"]),
        ('{"name":"P","transport":"stdio","command":""}', ["/name", "/command"]),
        (TEXT.replace('"p"', '"q"'), ["/name"]),
    ],
)
def test_a_row_that_no_longer_validates_names_its_server(text: str, pointers: list[str]) -> None:
    with pytest.raises(DefinitionInvalid) as caught:
        parse_record("p", Attached(text))
    assert caught.value.facts["server"] == "p"
    assert [pointer for pointer, _ in caught.value.errors] == pointers
