"""The files that ship beside the code. SPEC §settings, §state."""

import pytest

from app import shipped


@pytest.mark.spec("settings")
def test_a_checkout_finds_its_own_files() -> None:
    assert shipped.path(".env.defaults").read_text("utf-8").startswith("#")
    assert shipped.path("migrations").is_dir()
