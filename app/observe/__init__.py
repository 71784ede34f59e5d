"""ADAPTER to what operators watch daemons with: Prometheus and OpenTelemetry. SPEC §observe."""
