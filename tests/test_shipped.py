"""The files that ship beside the code. SPEC §settings, §state."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from app import shipped

ROOT = Path(__file__).parent.parent


@pytest.mark.spec("settings")
def test_a_checkout_finds_its_own_files() -> None:
    assert shipped.path(".env.defaults").read_text("utf-8").startswith("#")
    assert shipped.path("migrations").is_dir()


@pytest.mark.spec("state", "settings")
def test_an_installed_copy_finds_what_the_wheel_puts_beside_it(tmp_path: Path) -> None:
    """Lays the files out as the build does, apart from the checkout, and lets that copy make a database."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path / "site"
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in wheel["force-include"].items():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        (site / target).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / source, site / target)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app", "migrate"],
        cwd=tmp_path,
        env={**inherited, "PYTHONPATH": str(site), "PLURNK_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "home" / "plurnk.db").exists()
