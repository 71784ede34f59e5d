"""How long and for whom a result may be kept, as its server says. SPEC §watch.

MCP 2026-07-28 server/utilities/caching. What is malformed counts as not at all: never longer, never for more.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from app.core.json_value import JsonObject

CacheControl: TypeAlias = tuple[int, str]
"""``(ttlMs, cacheScope)``; 0 is not to be kept, and the scope is ``public`` or ``private``."""

TTL_MAX_MS: Final = 24 * 60 * 60 * 1000
"""Nothing is kept longer, whatever its server says."""
NEVER: Final[CacheControl] = (0, "private")


def cache_control(result: JsonObject) -> CacheControl:
    """Return what the result of a cacheable request says of itself."""
    ttl = result.get("ttlMs")
    scope = "public" if result.get("cacheScope") == "public" else "private"
    if isinstance(ttl, float) and ttl.is_integer():
        ttl = int(ttl)
    if isinstance(ttl, bool) or not isinstance(ttl, int):
        return 0, scope
    return min(max(ttl, 0), TTL_MAX_MS), scope


def narrowest(pages: Sequence[CacheControl]) -> CacheControl:
    """Return the shortest life and the narrowest scope of the pages, of which there is at least one."""
    scope = "public" if all(scope == "public" for _, scope in pages) else "private"
    return min(ttl for ttl, _ in pages), scope
