"""The type of a parsed JSON value; nothing else. RFC 8259."""

from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 recursive
"""Any JSON value, as orjson returns it."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object."""
