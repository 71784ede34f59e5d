"""Bytes that are kept for long, in the memory they need."""


def compact(data: bytes) -> bytes:
    """Return the same bytes without room to grow.

    What ``orjson.dumps`` returns occupies at least 4 KiB however short it is: of no account where it is sent and
    forgotten, and most of an attachment's memory where each tool's entry is kept so.
    """
    return bytes(memoryview(data))
