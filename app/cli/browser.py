"""Opens a page for the person, where there is a browser to open it in. SPEC §cli.

The URL becomes an argument of the browser's process: none that holds a credential comes here.
"""

import os
import sys
import webbrowser
from collections.abc import Mapping


def has_browser(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a page would open beside the terminal, not in it."""
    return sys.platform == "darwin" or any(
        environment.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def open_page(url: str) -> bool:
    """Return whether a browser was started on the page; what is no web page is not opened."""
    if not (has_browser() and url.startswith(("https://", "http://"))):
        return False
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
