"""Fixtures every test may use."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on the one backend the daemon runs on."""
    return "asyncio"
