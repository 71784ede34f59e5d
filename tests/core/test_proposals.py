"""What a person sees before a tool of effect host is called."""

import pytest

from app.core.interrupts import Question
from app.core.proposals import DECISION_SCHEMA, proposal


@pytest.mark.spec("policy")
def test_a_proposal_names_server_tool_arguments_and_effect() -> None:
    question = proposal(
        operation="op-1",
        server="project",
        tool="deploy",
        arguments={"svc": "api"},
        signature='{"svc": string}',
    )
    assert question == Question(
        reason="tool_call",
        message="Call tool 'deploy' of server 'project'?",
        response_schema=DECISION_SCHEMA,
        metadata={
            "operation": "op-1",
            "server": "project",
            "tool": "deploy",
            "effect": "host",
            "arguments": {"svc": "api"},
            "signature": '{"svc": string}',
        },
    )
