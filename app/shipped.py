"""Where the files that ship beside the code are, in a checkout and in a wheel. SPEC §state, §settings."""

from pathlib import Path


def path(name: str) -> Path:
    """Return the path of ``migrations`` or ``.env.defaults``."""
    packaged = Path(__file__).parent / "_shipped" / name
    return packaged if packaged.exists() else Path(__file__).parent.parent / name
