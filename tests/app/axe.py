"""The accessibility checker axe-core."""

from browser import Page
from npm import npm_package

_VERSION = "4.14.1"
_RUN = """
const [done] = arguments;
const told = ({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(", ")}`;
axe.run().then(({ violations }) => done(violations.map(told)), (error) => done([String(error)]));
"""


def axe_core() -> str:
    """Return the checker's script, or skip the test where npm is missing."""
    return (npm_package("axe-core", _VERSION) / "axe.min.js").read_text()


def violations(page: Page, script: str) -> list[str]:
    """Return the rules that a page breaks, and where."""
    # By the debugger: the page's own policy forbids foreign scripts.
    page.browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
    found: list[str] = page.browser.execute_async_script(_RUN)
    return found
