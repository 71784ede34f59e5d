"""withheld.py: every reason code of SPEC §prepare has words."""

import pytest

from app.core.withheld import explained

pytestmark = pytest.mark.spec("prepare")


@pytest.mark.parametrize(
    "reason, sentence",
    [
        ("schema-missing", "it has no input schema"),
        ("output-schema-too-deep", "its output schema is nested too deep"),
        (
            "output-reference-unresolved",
            "its output schema refers to something outside itself, which is never fetched",
        ),
        ("not-an-object", "its entry is no object"),
        ("uri-missing", "its entry is malformed"),
        ("output-x", "its entry is malformed"),
    ],
)
def test_a_reason_is_told_in_a_sentence(reason: str, sentence: str) -> None:
    assert explained(reason) == sentence
