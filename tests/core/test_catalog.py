"""A capability is offered where the server declared it with an object."""

import pytest

from app.core.catalog import ServerCatalog


@pytest.mark.spec("prepare")
def test_a_capability_that_is_no_object_is_not_offered() -> None:
    catalog = ServerCatalog("2026-07-28", None, {"tools": {}, "prompts": True, "resources": None}, None)
    assert [name for name in ("tools", "prompts", "resources", "completions") if catalog.offers(name)] == [
        "tools"
    ]
