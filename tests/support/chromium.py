"""A real Chromium without a window, where one is installed. Nothing here knows the daemon."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found() -> str | None:
    """Return where Chromium is, or None where it is not."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def showing(executable: str, url: str, profile: Path, *, rebound: str) -> Generator[None]:
    """Show a page for the length of the block; the name ``rebound`` leads to this machine, as a rebinder has it."""
    command = [
        *(executable, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ),
        *(f"--user-data-dir={profile}", f"--host-resolver-rules=MAP {rebound} 127.0.0.1", url),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
