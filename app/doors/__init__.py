"""What both HTTP doors share: who may come in, how a body is read, what answers. SPEC §security."""
