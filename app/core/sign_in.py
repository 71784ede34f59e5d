"""Signing in in the middle of an operation: which refusal wants it, the question, what its answer holds. SPEC §oauth.

What the callback is worth is judged by the attempt; that nothing else is sent again is the operation's.
"""

from app.core.answers import Answer, HttpRefusal
from app.core.challenge import parse_challenge
from app.core.definitions import HttpDefinition, InteractiveOAuth, StdioDefinition
from app.core.interrupts import Question, ResumeEntry
from app.core.json_value import JsonObject
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.web_host import shown_host, web_host

SIGN_INS_MAX = 2
"""How often one operation asks a person to sign in."""
REASON = "plurnk:authorization"
CALLBACK_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"callbackUrl": {"type": "string"}},
    "required": ["callbackUrl"],
}


def is_possible(definition: StdioDefinition | HttpDefinition | None) -> bool:
    """Return whether a person can sign in at the server of this definition."""
    return isinstance(definition, HttpDefinition) and isinstance(definition.authorization, InteractiveOAuth)


def is_demanded(answer: Answer) -> bool:
    """Return whether the request was refused for want of what a person can grant by signing in.

    RFC 6750 §3.1; MCP 2026-07-28 basic/authorization, Step-Up Authorization Flow.
    """
    match answer:
        case HttpRefusal(problem=None, status=401):
            return True
        case HttpRefusal(problem=None, status=403, bearer_challenge=challenge):
            return parse_challenge(challenge).wants_scope
        case _:
            return False


def sign_in_question(url: str, about: JsonObject) -> Question:
    """Return the question for the callback; ``about`` has the operation, the server and perhaps the tool.

    Raises:
        OAuthMetadataInvalid: nobody can judge where it leads.
    """
    server, host = str(about["server"]), web_host(url)
    if host is None:
        raise OAuthMetadataInvalid(server, "its sign-in page is at an address that nobody can judge")
    message = (
        f"Server '{server}' asks you to sign in at {shown_host(host)} "
        "and to hand over the whole URL that the browser is sent back to."
    )
    return Question(REASON, message, CALLBACK_SCHEMA, {**about, "url": url, "host": host})


def callback_url(entry: ResumeEntry) -> str | None:
    """Return the callback that the answer hands over, or None where nobody signed in."""
    payload = entry.payload
    if entry.status != "resolved" or not isinstance(payload, dict):
        return None
    return str(payload["callbackUrl"])
