"""One figure that stands for itself, with its bound where it has one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table of bounds, or of the table beside it where there is none."""

    name: str
    measured: float | None
    """None where what it is compared with was not measured."""
    unit: str = ""
    bound: float | None = None
    is_floor: bool = False
    """Whether the bound is the least, not the most."""

    @property
    def value(self) -> str:
        """What was measured, as one reads it."""
        return "-" if self.measured is None else f"{self.measured:.2f} {self.unit}".strip()

    @property
    def word(self) -> str:
        """What came of it."""
        if self.bound is None:
            return ""
        if self.measured is None:
            return "not measured"
        is_met = self.measured >= self.bound if self.is_floor else self.measured <= self.bound
        return "met" if is_met else "NOT met"
