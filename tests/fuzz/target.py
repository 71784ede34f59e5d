"""What is fuzzed: one parser of foreign bytes, and the laws that hold whatever they are."""

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import orjson

from app.core.json_value import Json, JsonObject

CANARY = "canary-5e7d1c-secret"
"""Stands in seeds where a secret might: what a parser says of a fault must not hold it."""
T = TypeVar("T")
JSON_WORDS: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"\\u0000",
        b"\\ud800",
        b"\\udc00",
        b"\xff",
        b"\n",
        b"\r",
        b"\xef\xbb\xbf",
    ),
    *(b"null", b"true", b"1e308", b"1e999", b"-0", b"18446744073709551616", b"NaN", b'""', b"{}", b"[]"),
)
URL_WORDS: Final = (
    *(
        b"https://",
        b"http://",
        b"//",
        b"@",
        b"#",
        b"?",
        b":",
        b"[::1]",
        b"[",
        b"]",
        b"%00",
        b"%2f",
        b"..",
        b"\\",
    ),
    *(
        b"127.1",
        b"0x7f.1",
        b"2130706433",
        b"xn--",
        b"\xe3\x80\x82",
        b"\xc2\xad",
        b":65536",
        b":0",
        b"\xef\xbc\x8f",
    ),
)


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. ``run`` returns where the bytes were taken or refused as documented, and raises else."""

    name: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    """Good inputs, from which bad ones are made."""
    words: tuple[bytes, ...]
    """Pieces of the grammar."""
    steps_fixed: int = 3_000
    steps_per_byte: int = 60
    """Lines of our own code that one input may cost: a bound of time that no busy machine moves."""


_CANARY_NAME = re.compile(rb'canary[^"=]*("\s*:|=)|"name"\s*:\s*"[^"]*canary')


def refused(error: Exception, data: bytes = b"") -> None:
    """Judge a documented refusal: neither its text nor its facts quote a value that stood there; names they may."""
    told = " ".join([str(error), repr(error), repr(vars(error))])
    assert CANARY not in told or has_canary_name(data), "a refusal quotes what it refuses"


def has_canary_name(data: bytes) -> bool:
    """Whether the canary stands in a name, which a refusal may show."""
    return _CANARY_NAME.search(data) is not None


def json_of(data: bytes) -> Json:
    """Return the JSON value of the bytes; of others their text, so that no input is wasted."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace")


def object_of(data: bytes) -> JsonObject:
    """Return the JSON object of the bytes, or one around whatever they are."""
    value = json_of(data)
    return value if isinstance(value, dict) else {"value": value}


def driven(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    work.close()
    raise AssertionError("it waits, where everything was there")
