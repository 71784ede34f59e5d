"""transport.py: both transports fit the seam, and a loss has the facts of a Problem."""

from app.connections.stdio import StdioOpener, StdioTransport
from app.connections.streamable_http import StreamableHttpTransport
from app.connections.transport import AddressNotSent, Diagnostics, Lost, OpenTransport, Transport
from app.core.answers import RequestNotSent


def fits(_kind: type[Transport]) -> None:
    """Be judged by the type checker."""


def opens(_kind: type[OpenTransport]) -> None:
    """Be judged by the type checker."""


def test_both_transports_fit_the_seam() -> None:
    fits(StreamableHttpTransport)
    fits(StdioTransport)
    opens(StdioOpener)
    for member in ("diagnostics", "request", "listen", "account", "begin_close", "close"):
        assert hasattr(StreamableHttpTransport, member)


def test_nothing_is_counted_or_known_at_first() -> None:
    assert Diagnostics() == Diagnostics(0, 0, 0, 0, 0)
    assert Lost("the process ended") == Lost("the process ended", None, None, None)
    assert isinstance(AddressNotSent("no"), RequestNotSent)
