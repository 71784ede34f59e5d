"""The command line: the daemon's own commands and the client side of its public HTTP API. SPEC §cli."""
