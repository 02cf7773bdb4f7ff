"""A headless Chromium that looks at a worker's page."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

_PATIENCE_SECONDS = 240.0
_LOOK_SECONDS = 0.1
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # the container's root has no other
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    # What the browser itself would ask of the world.
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
)


def find_chromium() -> tuple[str, str]:
    """Return the paths of the browser and its driver, or skip the test."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium; Debian's chromium and chromium-driver bring it")
    return browser, driver


@contextmanager
def chromium(width: int = 1280, height: int = 1000, *, scale: float = 1) -> Iterator[Chrome]:
    """Run a browser for a while."""
    browser, driver = find_chromium()
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (*_ARGUMENTS, f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.add_argument(f"--force-device-scale-factor={scale}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


class Page:
    """A worker's page in a browser."""

    def __init__(self, browser: Chrome, port: int, patience: float = _PATIENCE_SECONDS) -> None:
        self.browser = browser
        self.patience = patience
        self.host = f"127.0.0.1:{port}"

    def open(self) -> Self:
        self.browser.get(f"http://{self.host}/")
        return self

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector: str) -> int:
        return len(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        """Return an element's text as the page has it, whether in view or not."""
        return str(self.run(f"return document.querySelector({selector!r})?.textContent ?? ''"))

    def number(self, selector: str) -> float:
        """Return the number that an element shows, 0 where there is none yet."""
        text = self.text(selector).replace(",", "").replace("\N{MINUS SIGN}", "-")
        return 0.0 if text == "\N{EN DASH}" else float(text)

    def data(self, selector: str, name: str) -> str:
        """Return what an element says for scripts, in one step: the page may draw it anew."""
        attribute = f"querySelector({selector!r}).getAttribute('data-{name}')"
        return str(self.run(f"return document.{attribute} ?? ''"))

    def run(self, script: str) -> Any:
        return self.browser.execute_script(script)

    def tab(self, name: str) -> None:
        """Show the overview or the network."""
        self.find(f"#tabs [aria-controls={name}]").click()

    def theme(self, name: str) -> None:
        """Prefer a light or a dark page."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def width(self, pixels: int, height: int = 800) -> None:
        """Give the page a size, narrower than a window can be; 0 for that of the window."""
        size = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        if pixels:
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        else:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def pixels(self, selector: str, colour: str) -> int:
        """Count a canvas's pixels that have one of the style sheet's colours."""
        return int(self.run(_COUNT_PIXELS % (selector, colour))[0])

    def columns(self, selector: str, colour: str) -> float:
        """Return the share of a canvas's columns in which there is such a pixel."""
        return float(self.run(_COUNT_PIXELS % (selector, colour))[1])

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.patience
        while not condition():
            assert time.monotonic() < deadline, f"still not {what}: {self.text('body')}"
            time.sleep(_LOOK_SECONDS)

    def wait_state(self, state: str) -> Self:
        self.wait_until(lambda: self.data("#status", "state") == state, state)
        return self

    def errors(self) -> list[str]:
        """Return what the console has said since it was last asked."""
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def hosts(self) -> set[str]:
        """Return whom the page has asked since this was last called."""
        events = [json.loads(e["message"])["message"] for e in self.browser.get_log("performance")]
        urls = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return {urlsplit(url).netloc for url in urls if not url.startswith(("data:", "chrome:"))}


# Of a copy: the browser warns of a canvas that is read often.
_COUNT_PIXELS = """
const canvas = document.querySelector(%r);
if (canvas.width * canvas.height === 0) return [0, 0];  // it was shown just now
const copy = document.createElement("canvas");
[copy.width, copy.height] = [canvas.width, canvas.height];
const context = copy.getContext("2d", { willReadFrequently: true });
context.drawImage(canvas, 0, 0);
const { data } = context.getImageData(0, 0, copy.width, copy.height);
const probe = document.createElement("canvas").getContext("2d");
probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--%s");
probe.fillRect(0, 0, 1, 1);
const wanted = probe.getImageData(0, 0, 1, 1).data;
const columns = new Set();
let found = 0;
for (let i = 0; i < data.length; i += 4) {
  if (!wanted.every((part, at) => data[i + at] === part)) continue;
  columns.add((i / 4) %% copy.width);
  found += 1;
}
return [found, columns.size / copy.width];
"""
