"""Packages of JavaScript, which npm downloads once."""

import shutil
import subprocess
from pathlib import Path

import pytest

from faust_oslrau.app.brokers.jars import cache_folder


def npm_package(name: str, version: str) -> Path:
    """Return the folder of a package, or skip the test where npm is missing."""
    folder = cache_folder() / f"{name.replace('/', '-').lstrip('@')}-{version}"
    package = folder / "node_modules" / name
    if not package.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm; Debian's package of that name brings it")
        install = [npm, "install", "--prefix", folder, "--ignore-scripts", "--no-audit"]
        subprocess.run([*install, f"{name}@{version}"], check=True, capture_output=True)
    return package
