"""What is shown of a server that does not serve; a serving one is shown by ``list``'s own test."""

import pytest

from app.core.definitions import parse_definition
from app.core.problems import DefinitionInvalid, ServerNotFound
from app.core.snapshot import ServerSnapshot, ServerState
from app.core.summary import live_entry, summary

pytestmark = pytest.mark.spec("actions")


def test_an_unavailable_server_is_shown_with_its_problem_and_no_argument() -> None:
    definition = parse_definition(
        {
            "name": "p",
            "transport": "stdio",
            "command": "/x",
            "args": ["canary"],
            "env": {"K": "canary"},
            "tools": ["a"],
            "read": ["a"],
        }
    )
    problem = ServerNotFound("p")
    server: ServerSnapshot[None] = ServerSnapshot(
        name="p", source="service", state=ServerState.UNAVAILABLE, definition=definition, problem=problem
    )
    assert summary(server) == {
        "name": "p",
        "source": "service",
        "transport": "stdio",
        "state": "unavailable",
        "enabledTools": ["a"],
        "read": ["a"],
        "withheld": [],
        "problem": problem.document(),
    }
    assert live_entry(server) == {
        "name": "p",
        "source": "service",
        "transport": "stdio",
        "state": "unavailable",
    }


def test_a_row_that_no_longer_validates_has_no_transport_to_show() -> None:
    problem = DefinitionInvalid([("", "is no object")], server="p")
    server: ServerSnapshot[None] = ServerSnapshot(
        name="p", source="workspace", state=ServerState.UNAVAILABLE, definition=None, problem=problem
    )
    assert "transport" not in summary(server)
    assert "transport" not in live_entry(server)
    assert summary(server)["problem"] == problem.document()
