"""Where the peer programs are, how definitions name them, how the HTTP ones are run. SPEC §definition."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SDK_SERVER = HERE / "sdk_server.py"
FASTMCP_SERVER = HERE / "fastmcp_server.py"
ELICITING_SERVER = HERE / "eliciting_server.py"
SCRIPTED = HERE / "scripted.py"

Definition = dict[str, Any]


def stdio_definition(name: str, program: Path = SDK_SERVER, *arguments: str, **members: Any) -> Definition:
    """Return the definition that starts a peer program over stdio; ``arguments`` replace ``stdio``."""
    args = [str(program), *(arguments or ("stdio",))]
    return {"name": name, "transport": "stdio", "command": sys.executable, "args": args, **members}


def scripted_definition(name: str, way: str = "good", **members: Any) -> Definition:
    """Return the definition of the small peer over stdio, good or bad in one named way."""
    return stdio_definition(name, SCRIPTED, "stdio", way, **members)


def http_definition(name: str, url: str, **members: Any) -> Definition:
    """Return the definition of a peer over HTTP."""
    return {"name": name, "transport": "http", "url": url, **members}


@contextmanager
def http_peer(program: Path = SDK_SERVER, *arguments: str) -> Generator[str]:
    """Run a peer program over HTTP on a free loopback port and give its URL; it is gone afterwards.

    Raises:
        RuntimeError: the program ended before it listened.
    """
    command = [sys.executable, str(program), "http", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{program.name} did not listen: exit status {process.wait()}")
            yield json.loads(line)["url"]
        finally:
            process.kill()
