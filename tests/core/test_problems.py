"""Problems of management: each carries its facts, and a sentence that names what to do next."""

import pytest

from app.core import problems as p
from app.core.problem import Problem

pytestmark = pytest.mark.spec("problems")

SAMPLES: list[tuple[Problem, dict[str, object]]] = [
    (p.ActionUnknown("x" * 500), {"kind": "x" * 128}),
    (p.ActionRequired(), {"field": "forwardedProps.plurnk.action"}),
    (p.ParameterRequired("name"), {"field": "name"}),
    (p.ParameterInvalid("name", "a string is needed"), {"field": "name"}),
    (p.WorkspaceRequired(), {"field": "workspace"}),
    (p.WorkspaceInvalid(), {"field": "workspace"}),
    (p.WorkspaceRefused(), {}),
    (p.DefinitionInvalid([("/url", "is no URL")]), {"errors": [{"pointer": "/url", "message": "is no URL"}]}),
    (
        p.ReferenceMissing(server="s", variable="V", field="/env/K"),
        {"server": "s", "variable": "V", "field": "/env/K"},
    ),
    (
        p.ReferenceRefused(server="s", variable="V", field="/env/K"),
        {"server": "s", "variable": "V", "field": "/env/K"},
    ),
    (
        p.StdioRefused(server="s", setting="PLURNK_STDIO_POLICY", reason="no processes"),
        {"server": "s", "setting": "PLURNK_STDIO_POLICY"},
    ),
    (p.AddressRefused(server="s"), {"server": "s", "setting": "PLURNK_HTTP_HOSTS"}),
    (p.ServerExists("s"), {"server": "s"}),
    (p.ServerNotFound("s"), {"server": "s"}),
    (
        p.ServerNotConnected("s", cause={"detail": "It is down."}),
        {"server": "s", "cause": {"detail": "It is down."}},
    ),
    (p.ServerBusy("s", operations=["op-1"]), {"server": "s", "operations": ["op-1"]}),
    (p.ServerChanged("s"), {"server": "s"}),
    (
        p.ProtocolRevisionUnsupported("s", "http", answered="HTTP 404"),
        {
            "server": "s",
            "transport": "http",
            "requiredRevision": "2026-07-28",
            "requiredMethod": "server/discover",
        },
    ),
    (p.CapabilityRequired("s"), {"server": "s"}),
    (
        p.ServerUnavailable("s", "stdio", "it ended", exit_status=1, stderr="tail"),
        {"server": "s", "transport": "stdio", "exitStatus": 1, "stderr": "tail"},
    ),
    (
        p.CatalogInvalid("s", "duplicate-tool", "it lists 'a' twice", names=["a"]),
        {"server": "s", "reason": "duplicate-tool", "names": ["a"]},
    ),
    (p.AuthorizationRefused("s", "it says 401", http_status=401), {"server": "s", "httpStatus": 401}),
    (
        p.TooMany("streams", limit=5, setting="PLURNK_MAX_STREAMS"),
        {"limit": 5, "setting": "PLURNK_MAX_STREAMS"},
    ),
    (p.StoreUnavailable("the disk is full"), {}),
    (p.ShuttingDown(), {}),
    (p.Internal("abc"), {"trace": "abc"}),
]


@pytest.mark.parametrize("problem, facts", SAMPLES, ids=[type(problem).__name__ for problem, _ in SAMPLES])
def test_a_problem_has_its_facts_and_a_sentence(problem: Problem, facts: dict[str, object]) -> None:
    assert problem.facts == facts
    assert problem.detail.endswith(".")
    assert 20 < len(problem.detail) < 600
    for named in ("server", "variable", "field", "setting"):
        if named in facts and named != "field":
            assert str(facts[named]) in problem.detail


def test_the_refusal_of_a_legacy_endpoint_says_what_its_owner_can_do() -> None:
    problem = p.ProtocolRevisionUnsupported("s", "http", answered="HTTP 404", revisions=["2025-11-25"])
    words = ("2026-07-28", "server/discover", "HTTP 404", "Upgrade or replace", "ask its owner", "mcp 2")
    assert all(word in problem.detail for word in words)
    assert problem.facts["supportedRevisions"] == ["2025-11-25"]
    assert "install a newer" in p.ProtocolRevisionUnsupported("s", "stdio", answered="x").detail
