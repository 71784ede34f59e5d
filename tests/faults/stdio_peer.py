"""A case's stdio peer: an executable of its own that plays the script, and what is known of its processes."""

import itertools
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.faults.whole_peer import steps_of
from tests.support.children import SCRIPTED_STDIO
from tests.support.processes import is_alive
from tests.support.scripted_http import ECHO, FRESH, REVISION
from tests.support.subscriptions import ACKNOWLEDGED, TOOLS_FLAG, WATCHED, notification

Json = dict[str, Any]
NEVER_MS = 60_000
"""A longer sleep than any case waits: the request is never answered."""

_ENDINGS = {"result", "error", "raw", "exit", "kill", "pad", "close"}
_PLAIN = ("err", "exit", "nth", "birth", "times", "ch", "errfill", "pad", "order", "close", "touch")


class StdioPeer:
    """The fake server program of one run."""

    def __init__(self, directory: Path, peer: Json) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self.program = directory / "fake"
        self._births = directory / "births"
        self._log = directory / "log"
        self._times = directory / "times"
        self._grandchild = directory / "grandchild"
        self._announced = directory / "announced"
        script = directory / "script.json"
        script.write_text(json.dumps(self._script(peer)))
        command = shlex.join([sys.executable, "-I", "-S", str(SCRIPTED_STDIO), f"@{script}"])
        self.text = f'#!/bin/sh\nexec {command} "$0" "$@"\n'
        self.install(self.program)

    def install(self, path: Path) -> None:
        """Put the program at a path of the case's choice."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)
        path.chmod(0o755)

    @property
    def births(self) -> list[Json]:
        """Return each process that was started: id, arguments, environment, directory."""
        text = self._births.read_text() if self._births.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    @property
    def alive(self) -> list[int]:
        """Return the ids of the processes that live."""
        return [birth["pid"] for birth in self.births if is_alive(birth["pid"])]

    @property
    def descendants(self) -> list[int]:
        """Return the ids of the processes and grandchildren that live."""
        spawned = [int(self._grandchild.read_text())] if self._grandchild.exists() else []
        return self.alive + [pid for pid in spawned if is_alive(pid)]

    @property
    def lines(self) -> list[bytes]:
        """Return every line that a process read, and ``EOF`` where one saw its end."""
        return self._log.read_bytes().splitlines() if self._log.exists() else []

    @property
    def messages(self) -> list[Json]:
        """Return every message that a process read."""
        return [json.loads(line) for line in self.lines if line != b"EOF"]

    def gaps_ms(self, *methods: str) -> list[float]:
        """Return the milliseconds from each message of these methods to the next."""
        read = [json.loads(line) for line in self._times.read_text().splitlines()]
        moments = [moment for method, moment in read if method in methods]
        return [(after - before) * 1000 for before, after in itertools.pairwise(moments)]

    def announce(self) -> None:
        """Tell of a change of tools on the listen stream that is open."""
        self._announced.touch()

    def _listening(self) -> Json:
        """Return the steps of a server that tells of its tools."""
        found = {"supportedVersions": [REVISION], "capabilities": WATCHED}
        acknowledged = notification(ACKNOWLEDGED, notifications=TOOLS_FLAG)
        told = notification("notifications/tools/list_changed")
        return {
            "server/discover": [{"result": {**FRESH, **found}}],
            "subscriptions/listen": [_said(acknowledged), {**_said(told), "when": str(self._announced)}],
        }

    def _script(self, peer: Json) -> Json:
        start = peer.get("start", [])
        deaf = [each for step in start for each in step.get("deaf", ())]
        deaf += ["TERM" for step in start if step.get("exit_on") == "EOF"]
        kept = [step for step in start if not step.keys() & {"deaf", "exit_on"}]
        by_method = {**_http_told(peer), **told_of(peer)}
        on = {**_defaults(peer), **{name: self._steps(name, told) for name, told in by_method.items()}}
        if "listen" in peer:
            on |= self._listening()
        files = {"births": str(self._births), "log": str(self._log), "times": str(self._times)}
        return {
            **files,
            "deaf": deaf,
            "start": [each for step in kept for each in self._step("", step)],
            "on": on,
        }

    def _steps(self, name: str, told: list[Json]) -> list[Json]:
        steps = [each for step in told for each in self._step(name, step)]
        silent = any(step.get("sleep", 0) >= NEVER_MS for step in told)
        if not silent and not any(step.keys() & _ENDINGS for step in steps):
            steps += _defaults({}).get(name.partition(" ")[0], [])
        return steps

    def _step(self, name: str, step: Json) -> list[Json]:
        plain = {key: value for key, value in step.items() if key in _PLAIN}
        match step:
            case {"split_writes": sizes, "gap_ms": gap, "then": then}:
                [answer] = self._step(name, then)
                return [{**answer, "split": sizes, "gap": gap / 1000}]
            case {"prefix_notify": notification, "then": then}:
                return [{**_notification(notification), "hold": True}, *self._step(name, then)]
            case {"sleep": milliseconds} if milliseconds >= NEVER_MS:
                return []
            case _:
                return [{**plain, **self._translated(name, step)}]

    def _translated(self, name: str, step: Json) -> Json:
        match step:
            case {"result": result}:
                return {"result": {**envelope(name), **result}}
            case {"error": error}:
                return {"error": error}
            case {"notify": notification}:
                return _notification(notification)
            case {"out": text}:
                return {"raw": text}
            case {"self_kill": number}:
                return {"kill": number}
            case {"spawn": how}:
                kind = how if isinstance(how, str) else "sleeper"
                return {"spawn": kind, "pid_file": str(self._grandchild), "escapes": "escapes" in step}
            case {"sleep": milliseconds}:
                return {"sleep": milliseconds / 1000}
            case _:
                return {}


def envelope(name: str) -> Json:
    """Return what a result has unless its case says otherwise."""
    return {"resultType": "complete"} if name.startswith("tools/call") else dict(FRESH)


def _notification(message: Json) -> Json:
    return _said({"jsonrpc": "2.0", **message})


def _said(message: Json) -> Json:
    return {"raw": _line(message)}


def _line(message: Json) -> str:
    return json.dumps(message).replace('"$pt"', "$pt").replace('"$id"', "$id") + "\n"


def _http_told(peer: Json) -> dict[str, list[Json]]:
    """Return as steps what a case says of an HTTP peer and a process can do too."""
    told: dict[str, list[Json]] = {
        method: [{"out": _line(answer["json"])}]
        for method, answer in peer.get("answer", {}).items()
        if "json" in answer
    }
    for method, replies in peer.get("seq", {}).items():
        told[method] = [
            {"exit": 1, "nth": number}
            for number, reply in enumerate(replies, 1)
            if reply.get("then") == "reset"
        ]
    if "blackhole_after" in peer:
        told["tools/call"] = [{"sleep": NEVER_MS}]
    return told


def told_of(peer: Json) -> dict[str, list[Json]]:
    """Return the steps by method of all the ways in which a case may give them."""
    told = steps_of(peer)
    if "tools" in peer:
        told["tools/list"] = [{"result": {"tools": peer["tools"]}}]
    if "tools_seq" in peer:
        catalogs = enumerate(peer["tools_seq"], 1)
        told["tools/list"] = [{"result": {"tools": tools}, "birth": number} for number, tools in catalogs]
    for method, pages in peer.get("pages", {}).items():
        told[method] = [
            {
                "result": {k: v for k, v in page.items() if k not in {"expect_cursor", "repeat"}},
                **({} if page.get("repeat") else {"nth": number}),
            }
            for number, page in enumerate(pages, 1)
        ]
    return told


def _defaults(peer: Json) -> dict[str, list[Json]]:
    capabilities: Json = {"tools": {}, "resources": {}, "prompts": {}}
    resources = [{"uri": uri, "name": uri} for uri in peer.get("resources", ())]
    content = {"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}
    results: dict[str, Json] = {
        "server/discover": {"supportedVersions": [REVISION], "capabilities": capabilities},
        "tools/list": {"tools": [ECHO]},
        "resources/list": {"resources": resources},
        "resources/templates/list": {"resourceTemplates": []},
        "prompts/list": {"prompts": []},
        "resources/read": {"contents": []},
        "prompts/get": {"messages": []},
    }
    on: dict[str, list[Json]] = {
        method: [{"result": {**FRESH, **result}}] for method, result in results.items()
    }
    on["tools/call"] = [{"result": content}]
    for method, text in peer.get("raw_json", {}).items():
        on[method] = [{"raw": f'{{"jsonrpc":"2.0","id":$id,"result":{text}}}\n'}]
    return on
