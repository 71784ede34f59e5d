"""The REST twin: the same actions for curl and scripts. SPEC §agui."""
