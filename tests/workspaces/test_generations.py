"""Generations: advanced by changes only, and never the same number again."""

import pytest

from app.workspaces.generations import Generations

pytestmark = pytest.mark.spec("lifecycle")


def test_a_change_of_one_server_leaves_the_others_their_generation() -> None:
    generations = Generations()
    generations.advance("p")
    before = generations.of("p")
    generations.advance("q")
    assert generations.of("p") == before != generations.of("q")
    assert generations.of("never") == 0


def test_a_name_that_was_forgotten_and_returns_has_another_generation() -> None:
    generations = Generations()
    generations.advance("p")
    generations.advance("q")
    before = generations.of("p")
    generations.keep({"q"})
    assert generations.of("p") == 0
    generations.advance("p")
    assert generations.of("p") > before
