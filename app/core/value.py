"""Values that are made in every call: frozen for the type checker, and made at a quarter of the price.

``dataclass(frozen=True)`` has each field set through ``object.__setattr__``: 0.6 µs for five of them, not 0.16.
"""

from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=False)
def value(cls: type[T]) -> type[T]:
    """Return the class as a slotted dataclass that nobody changes; only the type checker sees to that."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
