"""A person's browser: it goes to an authorization URL and is sent back, which nobody follows. RFC 6749 §4.1."""

import ssl

import httpx2

_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Loading certificates takes longer than most requests; the authorization servers of tests serve plain HTTP."""


async def callback_of(url: str) -> str:
    """Return the whole callback URL that the authorization server redirects to.

    Raises:
        AssertionError: it did something else; its answer is in the message.
    """
    async with httpx2.AsyncClient(trust_env=False, verify=_TLS, timeout=20) as client:
        response = await client.get(url, follow_redirects=False)
    assert response.is_redirect, f"{response.status_code}: {response.text[:500]}"
    return response.headers["location"]
