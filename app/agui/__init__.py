"""The AG-UI endpoint: RunAgentInput in, one stream of events out. SPEC §agui."""
