"""The host of a web address as a person can judge it, before a browser is sent there. SPEC §calls, §oauth."""

from urllib.parse import urlsplit


def web_host(url: str) -> str | None:
    """Return the host of an http(s) URL, in ASCII, or None where nobody can judge it.

    User information would show another host first; control characters, blanks and what only a browser reads
    as a part of the name would hide one.
    """
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.username is None and parts.port != 0
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except ValueError:
        return None
    return host if is_web and host and "%" not in host else None


def shown_host(host: str) -> str:
    """Return the host with a word of doubt where it can look like another."""
    return f"{host} (a name in punycode, which can look like another)" if "xn--" in host else host
