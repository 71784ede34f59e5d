"""A small coverage-guided fuzzer: mutates inputs, keeps those that reach lines no other reached, counts steps.

Lines of ``app`` are traced, nothing else, so what is counted is our own work; what C code spends is told by the slowest
input of a run. Deterministic for one seed and one number of inputs.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tests.fuzz.target import Target

INPUT_MAX = 4096
_BRACKETS = (b"[", b"{", b'"', b"(", b"%", b"\\", b"${", b"a=", b"\0", b"\r\n", b"\xff", b"\xed\xa0\x80")
_VALUES = (b"0", b"-1", b"1e999", b"1e300", b"9" * 20, b"9" * 5000, b"null", b"true")
_Line = tuple[str, int]


class LawBroken(AssertionError):
    """An input broke a law of its target; carries the input."""

    def __init__(self, target: Target, data: bytes, why: str) -> None:
        super().__init__(f"{target.name}: {why}, on {data!r}")
        self.data = data


@dataclass(slots=True)
class Observed:
    """What one input did."""

    lines: set[_Line] = field(default_factory=set[_Line])
    steps: int = 0


def observe(target: Target, data: bytes) -> Observed:
    """Return what the input reached.

    Raises:
        LawBroken: it raised what is not documented, quoted a secret, or took more steps than its size allows.
    """
    seen = Observed()

    def local(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            seen.steps += 1
            seen.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def entered(frame: FrameType, _event: str, _argument: Any) -> Any:
        return local if "/app/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        target.run(data)
    except Exception as error:
        sys.settrace(before)
        raise LawBroken(target, data, f"{type(error).__name__}: {error}") from error
    finally:
        sys.settrace(before)
    if seen.steps > target.steps_fixed + target.steps_per_byte * len(data):
        raise LawBroken(target, data, f"{seen.steps} steps for {len(data)} bytes")
    return seen


@dataclass(slots=True)
class Figures:
    """What a run of one target came to."""

    executions: int = 0
    corpus: list[bytes] = field(default_factory=list[bytes])
    lines: int = 0
    slowest_s: float = 0.0
    slowest: bytes = b""
    broken: list[LawBroken] = field(default_factory=list[LawBroken])


def fuzz(target: Target, *, seed: int, goes_on: Callable[[int], bool], broken_max: int = 5) -> Figures:
    """Return the figures of mutating the target's inputs for as long as ``goes_on`` says of the number of them."""
    chance, figures = random.Random(seed), Figures()  # noqa: S311 chance that repeats is what is wanted
    reached: set[_Line] = set()
    waiting = [*target.seeds, b"", *target.words]
    while goes_on(figures.executions) and len(figures.broken) < broken_max:
        data = waiting.pop() if waiting else mutated(figures.corpus or [b""], target.words, chance)
        figures.executions += 1
        began = time.perf_counter()
        try:
            seen = observe(target, data)
        except LawBroken as broken:
            figures.broken.append(broken)
            continue
        spent = time.perf_counter() - began
        if spent > figures.slowest_s:
            figures.slowest_s, figures.slowest = spent, data
        if not seen.lines <= reached:
            reached |= seen.lines
            figures.corpus.append(data)
    figures.lines = len(reached)
    return figures


def mutated(corpus: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    """Return an input made of ones that are known, by a few random changes."""
    data = bytearray(chance.choice(corpus))
    for _ in range(1 << chance.randrange(4)):
        at, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
        other = chance.choice(corpus)
        fresh = chance.choice(
            (
                *(
                    chance.choice(words or _BRACKETS),
                    b"",
                    bytes(data[at:end]),
                    other[chance.randint(0, len(other)) :],
                ),
                *(
                    chance.randbytes(1),
                    chance.choice(_BRACKETS) * chance.choice((1, 2, 64, 400)),
                    chance.choice(_VALUES),
                ),
            )
        )
        data[at : chance.choice((at, at, at + 1, end))] = fresh
    return bytes(data[:INPUT_MAX])
