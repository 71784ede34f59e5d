"""Small MCP servers for the demo and for first steps; the standard library alone. MCP 2026-07-28."""
