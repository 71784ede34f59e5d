"""Adapter to SQL: what survives a restart. SPEC §state.

``open_store`` is the one way in; everything else here is its business.
"""

from app.store.refusal import StoreRefused
from app.store.sql_store import SqlStore, open_store

__all__ = ["SqlStore", "StoreRefused", "open_store"]
