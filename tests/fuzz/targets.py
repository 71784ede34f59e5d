"""Every parser of foreign bytes, in one table."""

from typing import Final

from tests.fuzz import house, oauth, peers

TARGETS: Final = (*peers.TARGETS, *oauth.TARGETS, *house.TARGETS)
