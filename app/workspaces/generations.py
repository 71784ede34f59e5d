"""The generation of each server: which committed change of its workspace was the last of its name. SPEC §lifecycle."""

from collections.abc import Container


class Generations:
    """Numbers committed changes. No number is given twice, so a name that is forgotten and returns is another."""

    def __init__(self) -> None:
        self._last = 0
        self._of: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Return the server's generation; 0 where it was never changed, or was forgotten."""
        return self._of.get(name, 0)

    def advance(self, name: str) -> None:
        """Note that a change of the server was committed."""
        self._last += 1
        self._of[name] = self._last

    def keep(self, names: Container[str]) -> None:
        """Forget every other name; nobody may remember a generation of one."""
        self._of = {name: generation for name, generation in self._of.items() if name in names}
