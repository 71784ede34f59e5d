"""The question that a tool of effect ``host`` puts before it is called. SPEC §policy, §calls.

What the person sees of the call: server, tool, the arguments as they will be sent, and the effect. The answer
is one word; ``operation`` decides what it does.
"""

from app.core.interrupts import Question
from app.core.json_value import JsonObject
from app.core.policy import Effect

DECISION_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"decision": {"type": "string", "enum": ["accept", "reject"]}},
    "required": ["decision"],
    "additionalProperties": False,
}


def proposal(*, operation: str, server: str, tool: str, arguments: JsonObject, signature: str) -> Question:
    """Return the question whether this call may be sent.

    ``signature`` names the parameters, so that a form can be shown without fetching the schema.
    """
    return Question(
        reason="tool_call",
        message=f"Call tool '{tool}' of server '{server}'?",
        response_schema=DECISION_SCHEMA,
        metadata={
            "operation": operation,
            "server": server,
            "tool": tool,
            "effect": str(Effect.HOST),
            "arguments": arguments,
            "signature": signature,
        },
    )
