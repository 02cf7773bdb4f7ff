"""The accessibility checker axe-core, which npm downloads once."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from browser import Page

from faust_oslrau.app.brokers.jars import cache_folder

_VERSION = "4.14.1"
_RUN = """
const [done] = arguments;
const told = ({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(", ")}`;
axe.run().then(({ violations }) => done(violations.map(told)), (error) => done([String(error)]));
"""


def axe_core() -> str:
    """Return the checker's script, or skip the test where npm is missing."""
    folder = cache_folder() / f"axe-core-{_VERSION}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm; Debian's package of that name brings it")
        install = [npm, "install", "--prefix", folder, "--ignore-scripts", "--no-audit"]
        subprocess.run([*install, f"axe-core@{_VERSION}"], check=True, capture_output=True)
    return script.read_text()


def violations(page: Page, script: str) -> list[str]:
    """Return the rules that a page breaks, and where."""
    # By the debugger: the page's own policy forbids foreign scripts.
    page.browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
    found: list[str] = page.browser.execute_async_script(_RUN)
    return found
