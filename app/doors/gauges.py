"""What a daemon holds right now, read when somebody asks for the metrics. SPEC §observe."""

from app.actions.action import Host
from app.core.measures import Gauge, single
from app.doors.streams import OpenStreams


def gauges(host: Host, streams: OpenStreams) -> tuple[Gauge, ...]:
    """Return a gauge for each thing that is bounded by SPEC §limits or grows with use."""
    return (
        single("plurnk_workspaces", "Workspaces in memory.", lambda: host.manager.count),
        single("plurnk_open_operations", "Operations that have not ended.", lambda: host.boards.open_count),
        single(
            "plurnk_pending_authorizations",
            "Sign-ins that a person was asked for.",
            lambda: host.manager.pending_count,
        ),
        single("plurnk_open_streams", "AG-UI streams that are open.", lambda: streams.open_count),
    )
