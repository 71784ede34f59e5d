"""Management actions, one file each, and their one explicit table. SPEC §actions."""
