"""The reported faults as data: one JSON object a case, run once for each variant and transport. SPEC §status.

Reads and expands the files of cases; what a case does and asks for is ``acting`` and ``judging``.
"""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.scope import AMENDED, MORE

Json = dict[str, Any]
REPORTED = ("cases.jsonl",)
"""The faults that were reported, as they were handed over."""
FILES = (*REPORTED, "variants_protocol.jsonl", "variants_transport.jsonl")
"""Beside them other instances of the same kinds. There ``per_transport`` says what ``PER_TRANSPORT`` lists here."""
_WORD = re.compile(r"\$([A-Za-z_][A-Za-z0-9_.]*)")
PER_TRANSPORT = {
    *("C1-g1", "C1-g2", "C2-g1", "C2-g2", "C2-g3", "C3-g1", "C3-g2", "C4-g1", "C4-g3"),
    *("C5-g1", "C5-g2", "C5-g3", "C6-g1", "C8-g1", "C10-g1"),
    *("L1-g1", "L1-g2", "L2-g1", "L2-g2", "L3-g1", "L5-g1", "L5-g2", "L5-g3", "L6-g1", "L8-g1"),
    *("A1-g1", "A2-g1", "D1-g1", "S3-g1", "T1-g1", "X1-g1", "X1-g4"),
}
"""Cases whose steps name stdio and whose fault is no matter of a process: once as they stand, once over HTTP."""
ALSO_STDIO = {"H4-g2", "L2-g3", "L4-g1", "R1-g1", "R1-g2"}
"""Cases whose steps name HTTP and whose fault is no matter of HTTP: once as they stand, once over stdio."""


@dataclass(frozen=True)
class Run:
    """One execution of a case."""

    identity: str
    case: Json
    """With its variant filled in, other words not."""
    is_over_http: bool = False
    """Whether each stdio definition is made one over HTTP."""
    is_over_stdio: bool = False
    """Whether each HTTP definition is made one over stdio."""

    @property
    def id(self) -> str:
        """The case's own id."""
        return self.case["id"]


def all_cases(files: Iterable[str] = FILES) -> list[Json]:
    """Return every case, amended."""
    texts = [Path(__file__).with_name(name).read_text() for name in files]
    cases = [json.loads(line) for text in texts for line in text.splitlines()]
    amended = [{**case, **AMENDED.get(case["id"], {})} for case in cases]
    return [{**case, "expect": [*case["expect"], *MORE.get(case["id"], [])]} for case in amended]


def runs(files: Iterable[str] = FILES) -> Iterator[Run]:
    """Give every execution of every case."""
    for case in all_cases(files):
        variants = case.get("sql_state") or case.get("variants")
        for number, variant in enumerate(variants or [None]):
            identity = case["id"] if variants is None else f"{case['id']}-{number + 1}"
            state = {"sql_state": variant} if "sql_state" in case else {}
            words = {**words_of(variant), "number": number}
            expanded = case if variants is None else filled({**case, **state}, words)
            if case["id"] in PER_TRANSPORT or case.get("per_transport"):
                yield Run(f"{identity}-stdio", expanded)
                yield Run(f"{identity}-http", expanded, is_over_http=True)
            elif case["id"] in ALSO_STDIO:
                yield Run(f"{identity}-http", expanded)
                yield Run(f"{identity}-stdio", expanded, is_over_stdio=True)
            else:
                yield Run(identity, expanded)


def words_of(variant: Any) -> dict[str, Any]:
    """Return ``$variant`` and its parts."""
    parts: dict[str, Any] = {"variant": variant}
    if isinstance(variant, dict):
        parts.update({f"variant.{name}": value for name, value in variant.items()})
    if isinstance(variant, list):
        parts.update({f"variant.{number}": value for number, value in enumerate(variant)})
    return parts


def filled(value: Any, words: Mapping[str, Any]) -> Any:
    """Return the value with its words replaced; a word that is the whole text keeps its type."""
    match value:
        case {"$repeat": [text, times]}:
            return text * times
        case {"by_variant": [*choices]}:
            return {"by_variant": choices[words["number"]]} if "number" in words else value
        case dict():
            return {filled(name, words): filled(each, words) for name, each in value.items()}
        case list():
            return [filled(each, words) for each in value]
        case str():
            return _filled_text(value, words)
        case _:
            return value


def _filled_text(text: str, words: Mapping[str, Any]) -> Any:
    whole = _WORD.fullmatch(text)
    if whole and whole[1] in words:
        return copy.deepcopy(words[whole[1]])
    return _WORD.sub(lambda match: str(words.get(match[1], match[0])), text)
