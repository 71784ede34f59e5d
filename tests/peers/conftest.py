"""The option that rewrites docs/compatibility.md from the run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite docs/compatibility.md from this run")
