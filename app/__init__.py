"""plurnk-mcpd: an async daemon that is an MCP host for many workspaces at once. SPEC §role."""
