"""ACTIONS: the explicit table of every management action, which SPEC, README and the doors read. SPEC §actions."""

from types import MappingProxyType
from typing import Any

from app.actions import (
    attach,
    call,
    cancel,
    complete,
    detach,
    oauth_complete,
    read,
    reconnect,
    replace,
    restore,
    tools,
    watch,
)
from app.actions import (
    list as list_action,
)
from app.actions.action import Action

_ROWS: tuple[Action[Any], ...] = (
    list_action.ACTION,
    attach.ACTION,
    replace.ACTION,
    detach.ACTION,
    reconnect.ACTION,
    restore.ACTION,
    oauth_complete.ACTION,
    complete.ACTION,
    tools.ACTION,
    call.ACTION,
    read.ACTION,
    cancel.ACTION,
    watch.ACTION,
)
ACTIONS = MappingProxyType({action.kind: action for action in _ROWS})
"""Kind to action, in the order of SPEC §actions."""
