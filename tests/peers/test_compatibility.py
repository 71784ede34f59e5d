"""docs/compatibility.md has every server of the wall; no registry is needed for that. SPEC §revision."""

import pytest

from tests.support.compatibility import (
    ATTACHED,
    NONE,
    PAGE,
    Attached,
    Refused,
    names,
    row,
    rows_of,
    with_rows,
)
from tests.support.published import MODERN, REFUSED

pytestmark = pytest.mark.spec("revision")


def test_the_page_in_the_documents_has_a_row_for_every_server() -> None:
    text = PAGE.read_text()
    attached, refused = rows_of(text, "attached"), rows_of(text, "refused")
    assert [cells[:3] for cells in attached] == [names(peer) for peer in MODERN]
    assert {len(cells) for cells in attached} == {len(ATTACHED)}
    assert refused == [row(peer, Refused(peer.answered)) for peer in REFUSED]
    assert with_rows(text, attached, refused) == text


def test_a_row_says_what_was_seen() -> None:
    seen = Attached("mcp-time 1", 2, frozenset({"workspace.mcp.call"}))
    assert row(MODERN[0], seen)[3:] == ["mcp-time 1", "2", NONE, NONE, "yes", "yes", NONE]
    assert row(REFUSED[-1], Refused("HTTP status 404"))[3:] == ["HTTP status 404"]
