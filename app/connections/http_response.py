"""Reading what HTTP says of an answer: media type, challenge, redirect, decoded bytes, and how it failed.

SPEC §connection. What the bytes mean is ``wire``'s, whose answer they are ``streamable_http``'s. Every reason given
here is our own phrase.
"""

import os
import re
from contextlib import suppress
from typing import Final

import aiohttp
import anyio
from aiohttp.http import HttpProcessingError
from anyio.lowlevel import checkpoint
from yarl import URL

from app.connections.address_rule import AddressNotAllowedError
from app.connections.http_exchange import Post
from app.connections.transport import AddressNotSent
from app.core.answers import AnswerLost, AnswerTooLarge, RequestNotSent

SETTLE_S: Final = 0.05
"""Seconds a stream that has answered may take to end, so that its connection can be pooled again."""

_BEARER: Final = re.compile(r"(?:^|,)\s*bearer(?:[\s,]|$)", re.IGNORECASE)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def redirect_target(response: Post, url: URL) -> URL | None:
    """Return where a 307 or 308 leads within the same origin; None for everything else."""
    if response.status not in {307, 308} or not (location := response.headers.get("Location")):
        return None
    try:
        target = url.join(URL(location))
        is_same_origin = target.user is None and target.origin() == url.origin()
    except ValueError:
        return None
    return target.with_fragment(None) if is_same_origin else None


def media_type(response: Post) -> str:
    """Return the media type in lower case without parameters; empty where there is none."""
    return response.content_type.partition(";")[0].strip().lower()


def bearer_challenge(response: Post) -> str | None:
    """Return the ``WWW-Authenticate`` value that has a Bearer challenge. RFC 9110 §11.6.1."""
    for value in response.headers.getall("WWW-Authenticate", ()):
        if _BEARER.search(_QUOTED.sub('""', value)):
            return value
    return None


async def read_chunk(response: Post) -> bytes:
    """Return the next decoded bytes, or none at the end; others have their turn first.

    A few bytes may decode to so many that there is always a next piece, and nobody would ever wait.

    Raises:
        AnswerLost: the connection failed or the encoding is broken.
    """
    await checkpoint()
    return await _next_chunk(response)


async def _next_chunk(response: Post) -> bytes:
    try:
        return await response.chunk()
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        raise AnswerLost(loss(error)) from None


async def read_body(response: Post, limit: int) -> bytes:
    """Return the whole decoded body.

    Raises:
        AnswerTooLarge: it is over the limit; the rest is not read.
        AnswerLost: it was cut.
    """
    if response.whole is not None:
        if len(response.whole) > limit:
            raise AnswerTooLarge(limit)
        return response.whole
    chunks: list[bytes] = []
    size = 0
    # Small answers are whole by now; the others take turns.
    while chunk := await (read_chunk(response) if chunks else _next_chunk(response)):
        size += len(chunk)
        if size > limit:
            raise AnswerTooLarge(limit)
        chunks.append(chunk)
        if response.is_over:
            break
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def await_end(response: Post) -> None:
    """Return when the stream has ended or had its time to end; what still comes is dropped."""
    if response.has_all:
        return
    with anyio.move_on_after(SETTLE_S), suppress(AnswerLost):
        while await read_chunk(response):
            pass


def loss(error: Exception) -> str:
    """Return, in our words, how a request that was sent lost its answer."""
    match error:
        case HttpProcessingError():
            return "the answer is not HTTP"
        case aiohttp.ClientPayloadError():
            return "the answer was cut or is not encoded as it says"
        case _:
            return "the connection ended before the answer"


def not_sent(error: Exception) -> RequestNotSent:
    """Return, in our words, why a request was not sent."""
    match error:
        case aiohttp.ClientConnectorDNSError(os_error=AddressNotAllowedError()):
            return AddressNotSent("PLURNK_HTTP_HOSTS does not allow its address")
        case aiohttp.ClientConnectorDNSError():
            return RequestNotSent("its host name cannot be resolved")
        case aiohttp.ClientConnectorCertificateError():
            return RequestNotSent("certificate verification failed")
        case aiohttp.ClientConnectorSSLError() | aiohttp.ServerFingerprintMismatch():
            return RequestNotSent("the TLS handshake failed")
        case aiohttp.ClientProxyConnectionError():
            return RequestNotSent("the proxy that PLURNK_HTTP_PROXY names cannot be reached")
        case aiohttp.ClientHttpProxyError(status=status):
            return RequestNotSent(f"the proxy refused the connection with HTTP status {status}")
        case aiohttp.ClientConnectorError(os_error=OSError(errno=int(number))) if number > 0:
            return RequestNotSent(f"cannot connect: {os.strerror(number).lower()}")
        case _:
            return RequestNotSent("cannot connect")
