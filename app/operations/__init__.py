"""Work in flight: tool calls, reads, completions, and the questions they wait on. SPEC §calls."""
