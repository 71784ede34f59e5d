"""Talks to a running daemon over its public HTTP API: REST for actions, AG-UI for runs. SPEC §agui, §cli."""

import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
import orjson

from app.cli.failures import AnswerLost, DaemonUnreachable, ProblemAnswer
from app.cli.target import START_IT, Target
from app.core.json_value import Json, JsonObject

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""A stream carries a keep-alive every 15 s; this long a silence means that the daemon is gone."""
MAX_EVENT = 16 * 1024 * 1024


class DaemonClient:
    """One conversation with one daemon."""

    def __init__(self, target: Target) -> None:
        self._target = target
        headers = {} if target.token is None else {"Authorization": f"Bearer {target.token}"}
        # No ambient proxy: the token is for the daemon alone. No read deadline: an action may take its time.
        with self._translated():
            self._http = httpx2.Client(
                base_url=target.url,
                headers=headers,
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=False,
                follow_redirects=False,
            )

    def __enter__(self) -> Self:
        """Return the client; leaving closes its connections, which cancels what it still waits for."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def act(self, workspace: str, action: Mapping[str, Json], *, seconds: float | None = None) -> JsonObject:
        """Return the result of one action; ``seconds`` is how long it may take, which else has no bound.

        Raises:
            ProblemAnswer: the daemon answered with a Problem.
            DaemonUnreachable: nobody answered.
            AnswerLost: the connection broke before the answer was whole.
        """
        path = f"/v1/workspaces/{quote(workspace, safe='')}/actions"
        with self._translated():
            timeout = httpx2.Timeout(seconds, connect=min(seconds or CONNECT_SECONDS, CONNECT_SECONDS))
            response = self._http.post(path, json=dict(action), timeout=timeout)
            return self._document(response)

    def get(self, path: str, query: Mapping[str, str]) -> JsonObject:
        """Return the document at a path.

        Raises:
            ProblemAnswer: the daemon answered with a Problem.
            DaemonUnreachable: nobody answered.
            AnswerLost: the connection broke before the answer was whole.
        """
        with self._translated():
            return self._document(self._http.get(path, params=dict(query)))

    def run(
        self,
        workspace: str,
        *,
        thread: str,
        action: Mapping[str, Json] | None = None,
        resume: Sequence[JsonObject] | None = None,
    ) -> Generator[JsonObject]:
        """Give the events of one AG-UI run as they come; closing the generator disconnects.

        Raises:
            ProblemAnswer: the run was refused before it began.
            DaemonUnreachable: nobody answered.
            AnswerLost: the stream broke.
        """
        plurnk: JsonObject = {"workspace": workspace}
        body: dict[str, Any] = {"threadId": thread, "runId": f"run-{uuid.uuid4()}", "protocolVersion": "1.0"}
        body |= {"messages": [], "forwardedProps": {"plurnk": plurnk}}
        if action is not None:
            plurnk["action"] = dict(action)
        if resume is not None:
            body["resume"] = list(resume)
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        headers = {"Accept": "text/event-stream"}
        with (
            self._translated(),
            self._http.stream("POST", "/", json=body, headers=headers, timeout=timeout) as response,
        ):
            if response.status_code != 200:
                response.read()
                self._document(response)
            for event in httpx2.EventSource(response, MAX_EVENT):
                document = orjson.loads(event.data)
                if not isinstance(document, dict):
                    raise self._stranger(response.status_code)
                yield document

    def _document(self, response: httpx2.Response) -> JsonObject:
        """Return the JSON object of an answer below 400."""
        try:
            document = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise self._stranger(response.status_code)
        if response.status_code < 400:
            return document
        if "code" not in document:
            raise self._stranger(response.status_code)
        raise ProblemAnswer(document)

    def _stranger(self, status: int) -> DaemonUnreachable:
        return DaemonUnreachable(
            f"What answers at {self._target.url} is not this daemon (HTTP {status}).",
            "Check --url, or the address in daemon.json.",
        )

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise DaemonUnreachable(f"Nothing listens at {self._target.url}.", START_IT) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise DaemonUnreachable(
                f"'{self._target.url}' is no address of a daemon.", "Give --url as http://HOST:PORT."
            ) from error
        except (httpx2.TransportError, orjson.JSONDecodeError) as error:
            raise AnswerLost(
                f"The connection to {self._target.url} broke before the answer; its effect is unknown.",
                "See what became of it with 'plurnk-mcpd list', then try again.",
            ) from error
