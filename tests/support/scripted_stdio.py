"""A child process that does over its pipes exactly what its JSON script says, good or bad. SPEC §connection.

Run as ``python scripted_stdio.py SCRIPT``, where ``@FILE`` is the file that holds it. The script is an object:

- ``start``: steps at the start; ``on``: method, or method and tool name, to steps; one without is never answered
- ``deaf``: any of ``EOF`` and ``TERM``
- ``log``: a file that gets every line that was read, and ``EOF``
- ``times``: a file that gets the method and the monotonic time of every line that was read
- ``births``: a file that gets a line of JSON for each process: its id, arguments, environment and directory

A step is an object with one of: ``result``, ``error``, ``raw`` (text with ``$id`` and ``$pt``,
``times``), ``pad`` (a result of that many bytes; ``order: last`` puts its id last), ``notify`` (progress,
``times``), ``args`` (a result that tells what this process was started with), ``err``, ``errfill``
(bytes, of ``ch``), ``sleep``, ``exit``, ``kill``, ``spawn`` (``sleeper`` or ``stubborn``, which ignores
SIGTERM; ``escapes`` leaves the session; ``pid_file`` gets its id), ``close`` (``stdin`` or ``stdout``),
``touch`` (a file), ``wait`` (for a file), ``stash`` (answer later) and ``unstash`` (answer all that were,
last first). ``split`` beside ``raw`` or ``result`` writes it in pieces of so many bytes, ``gap`` seconds apart;
``hold`` beside it keeps the bytes for the next write. ``when`` beside ``raw`` writes it once that file is there,
while the next requests are answered. A step with ``nth`` is for that request of its kind
only, one with ``birth`` for that process of the file of births only.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STUBBORN = (
    "import signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(600)"
)
SLEEPER = "import time\nprint(flush=True)\ntime.sleep(600)"

Step = dict[str, Any]


class Peer:
    """One run of a script."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.request: dict[str, Any] = {}
        self.stashed: list[int] = []
        self.held = b""
        self.counts: dict[str, int] = {}
        self.birth = 0

    def write(self, data: bytes, step: Step) -> None:
        data = self.held + data
        self.held = b""
        if step.get("hold"):
            self.held = data
            return
        start = 0
        for size in itertools.chain(step.get("split", ()), [len(data)]):
            piece = data[start : start + size]
            while piece:
                piece = piece[os.write(1, piece) :]
            start += size
            time.sleep(step.get("gap", 0))

    def send(self, message: dict[str, Any], step: Step) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n", step)

    def play(self, steps: list[Step], count: int = 1) -> None:
        for step in steps:
            if step.get("nth", count) == count and step.get("birth", self.birth) == self.birth:
                name = next(name for name in step if name in STEPS)
                STEPS[name](self, step)

    def respond(self) -> None:
        on = self.script.get("on", {})
        method = self.request["method"]
        named = f"{method} {self.request.get('params', {}).get('name')}"
        key = named if named in on else method
        self.counts[key] = self.counts.get(key, 0) + 1
        self.play(on.get(key, []), self.counts[key])

    def serve(self) -> None:
        if births := self.script.get("births"):
            born = {"pid": os.getpid(), "argv": sys.argv[2:], "env": dict(os.environ), "cwd": str(Path.cwd())}
            note(births, json.dumps(born).encode() + b"\n")
            self.birth = len(Path(births).read_bytes().splitlines())
        if "TERM" in self.script.get("deaf", ()):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.play(self.script.get("start", []))
        log = self.script.get("log")
        with os.fdopen(0, "rb", closefd=False) as stdin:
            for line in stdin:
                note(log, line)
                self.request = json.loads(line)
                note(
                    self.script.get("times"),
                    json.dumps([self.request["method"], time.monotonic()]).encode() + b"\n",
                )
                self.respond()
        note(log, b"EOF\n")
        if "EOF" in self.script.get("deaf", ()):
            time.sleep(600)


def note(log: str | None, line: bytes) -> None:
    if log:
        with Path(log).open("ab") as file:
            file.write(line)


def answer(peer: Peer, step: Step) -> None:
    kind = "error" if "error" in step else "result"
    peer.send({"id": peer.request["id"], kind: step[kind]}, step)


def raw(peer: Peer, step: Step) -> None:
    token = peer.request.get("params", {}).get("_meta", {}).get("progressToken")
    text = step["raw"].replace("$id", json.dumps(peer.request.get("id"))).replace("$pt", json.dumps(token))
    data = text.encode("utf-8", "surrogateescape") * step.get("times", 1)
    if "when" not in step:
        peer.write(data, step)
        return

    def write_then() -> None:
        wait(peer, {"wait": step["when"]})
        peer.write(data, step)

    threading.Thread(target=write_then, daemon=True).start()


def pad(peer: Peer, step: Step) -> None:
    identity = b'"id":%d' % peer.request["id"]
    body = b'"result":{"text":"%s"}' % (b"x" * step["pad"])
    order = (
        [body, b'"jsonrpc":"2.0"', identity]
        if step.get("order") == "last"
        else [b'"jsonrpc":"2.0"', identity, body]
    )
    peer.write(b"{" + b",".join(order) + b"}\n", step)


def notify(peer: Peer, step: Step) -> None:
    params = json.loads(
        json.dumps(step["notify"]).replace(
            '"$pt"', json.dumps(peer.request["params"]["_meta"].get("progressToken"))
        )
    )
    for _ in range(step.get("times", 1)):
        peer.send({"method": "notifications/progress", "params": params}, step)


def errfill(_peer: Peer, step: Step) -> None:
    piece = step.get("ch", "e").encode() * 4096
    left = step["errfill"]
    while left > 0:
        left -= os.write(2, piece[:left])


def spawn(_peer: Peer, step: Step) -> None:
    program = STUBBORN if step["spawn"] == "stubborn" else SLEEPER
    ready, theirs = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        start_new_session=step.get("escapes", False),
    )
    os.read(ready, 1)
    child.returncode = 0  # its end is not our business
    Path(step["pid_file"]).write_text(str(child.pid))


def wait(_peer: Peer, step: Step) -> None:
    while not Path(step["wait"]).exists():
        time.sleep(0.01)


def unstash(peer: Peer, step: Step) -> None:
    for identifier in [peer.request["id"], *reversed(peer.stashed)]:
        peer.send({"id": identifier, "result": {"was": identifier}}, {})
    peer.stashed.clear()


def err(_peer: Peer, step: Step) -> None:
    os.write(2, step["err"].encode("utf-8", "surrogateescape"))


def sleep(_peer: Peer, step: Step) -> None:
    time.sleep(step["sleep"])


def leave(_peer: Peer, step: Step) -> None:
    os._exit(step["exit"])


def kill(_peer: Peer, step: Step) -> None:
    os.kill(os.getpid(), signal.Signals[f"SIG{step['kill']}"])


def close(_peer: Peer, step: Step) -> None:
    os.close({"stdin": 0, "stdout": 1}[step["close"]])


def touch(_peer: Peer, step: Step) -> None:
    Path(step["touch"]).touch()


def stash(peer: Peer, _step: Step) -> None:
    peer.stashed.append(peer.request["id"])


def args(peer: Peer, step: Step) -> None:
    result = {"args": sys.argv[2:], "env": dict(os.environ), "cwd": str(Path.cwd())}
    peer.send({"id": peer.request["id"], "result": result}, step)


STEPS: dict[str, Callable[[Peer, Step], None]] = {
    "result": answer,
    "error": answer,
    "raw": raw,
    "pad": pad,
    "notify": notify,
    "args": args,
    "err": err,
    "errfill": errfill,
    "sleep": sleep,
    "exit": leave,
    "kill": kill,
    "spawn": spawn,
    "close": close,
    "touch": touch,
    "wait": wait,
    "stash": stash,
    "unstash": unstash,
}


if __name__ == "__main__":
    try:
        told = sys.argv[1]
        Peer(json.loads(Path(told[1:]).read_text() if told.startswith("@") else told)).serve()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)
