"""Adapter to SQL: what survives a restart. SPEC §state."""
