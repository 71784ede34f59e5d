"""Every kind of Problem that a door answers with before a request reaches a workspace. SPEC §problems, §security."""

from collections.abc import Sequence

from app.core.problem import Problem, first_of, listed


class Unauthenticated(Problem):
    """No bearer token, or a wrong one."""

    code, title, status = "unauthenticated", "Unauthenticated", 401

    def __init__(self) -> None:
        super().__init__("Send 'Authorization: Bearer …' with the token that `plurnk-mcpd token` prints.")


class HostRefused(Problem):
    """The Host header is not on the allow-list."""

    code, title, status = "host-refused", "Host refused", 403

    def __init__(self) -> None:
        super().__init__("This Host is not served here. PLURNK_ALLOWED_HOSTS lists the ones that are.")


class OriginRefused(Problem):
    """The Origin header is not on the allow-list."""

    code, title, status = "origin-refused", "Origin refused", 403

    def __init__(self) -> None:
        super().__init__(
            "This Origin may not use the daemon. PLURNK_ALLOWED_ORIGINS lists the ones that may."
        )


class BodyTooLarge(Problem):
    """The request body is over the limit."""

    code, title, status = "body-too-large", "Request body too large", 413

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            f"The request body is larger than {limit} bytes. Send less, or ask the operator to raise PLURNK_MAX_BODY.",
            limit=limit,
            setting="PLURNK_MAX_BODY",
        )


class MediaTypeUnsupported(Problem):
    """The request body is not declared as JSON."""

    code, title, status = "media-type-unsupported", "Media type unsupported", 415

    def __init__(self) -> None:
        super().__init__("Send the body as JSON with 'Content-Type: application/json'.")


class InputMalformed(Problem):
    """The request body is not the JSON that this route takes; values are never quoted."""

    code, title, status = "input-malformed", "Input malformed", 422

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        first = first_of(errors)
        super().__init__(f"The body is malformed: {first}.", errors=listed(errors))
