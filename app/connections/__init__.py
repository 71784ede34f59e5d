"""Adapter: MCP 2026-07-28 on the wire, over stdio and Streamable HTTP. SPEC §connection."""
