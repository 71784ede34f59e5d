"""One workspace: what is authoritative and how it changes. SPEC §lifecycle, §hydration."""
