"""Makes docs/images from the demonstration: `make screenshots`; needs Debian's chromium-driver."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

from browser import Page, chromium  # of tests/app
from PIL import Image
from selenium.webdriver import Keys

_IMAGES = Path(__file__).parent / "images"
_DEMO = ("demo", "--seconds", "600", "--rate", "1500", "--partitions", "2")
_WIDTH, _HEIGHT = 1240, 1330
_PHONE_WIDTH, _PHONE_HEIGHT = 360, 780
# By then the charts are full, there are incidents to see, and the network has grown.
_SECONDS = 180
_ENOUGH_INCIDENTS = 3


def main() -> None:
    """Run the demonstration, look at its page, and save what is seen."""
    command = [str(Path(sys.executable).with_name("faust-oslrau")), *_DEMO]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as demo:
        try:
            port = _port(demo)
            _wait_for(port, demo)
            _take(port)
        finally:
            demo.terminate()


def _port(demo: subprocess.Popen[str]) -> int:
    """Return the port that the demonstration's first line names."""
    line = demo.stderr.readline() if demo.stderr else ""
    found = re.search(r"Demo at http://127\.0\.0\.1:(\d+)", line)
    if found is None:
        raise SystemExit(f"expected the address of a page, got {line!r}")
    return int(found[1])


def _wait_for(port: int, demo: subprocess.Popen[str]) -> None:
    """Wait until the worker answers."""
    while demo.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)


def _take(port: int) -> None:
    with chromium(_WIDTH, _HEIGHT) as browser:
        page = Page(browser, port, patience=900).open().wait_state("live")
        time.sleep(_SECONDS)
        page.wait_until(
            lambda: page.count("#incidents .spark:not([hidden])") >= _ENOUGH_INCIDENTS,
            "full of incidents",
        )
        page.theme("light")
        page.open()  # a page plots the field and the entity of the latest incident at first
        _wait_for_plot(page)
        _resize(page, _HEIGHT)
        _save("page.png", browser.get_screenshot_as_png())
        _take_incident(page)
        page.open().wait_until(lambda: page.count(".incident") > 0, "back")
        _choose_a_leaf(page)
        page.theme("dark")
        # The window holds the whole page, so that a section lies in it as a whole.
        _resize(page, page.run("return document.documentElement.scrollHeight"))
        _save("network.png", page.find("#network").screenshot_as_png)


def _wait_for_plot(page: Page) -> None:
    plot = page.find("#field canvas")
    page.wait_until(
        lambda: plot.get_attribute("aria-label") not in (None, "no values yet"),
        "plotting an incident's field",
    )


def _take_incident(page: Page) -> None:
    """Take the page of one incident, and the same on a phone."""
    page.find(".incident details").click()
    page.find(".incident details a").click()
    page.wait_until(lambda: page.count("#addressed .incident .spark:not([hidden])") > 0, "alone")
    _wait_for_plot(page)
    _save("incident.png", page.browser.get_screenshot_as_png())
    _resize(page, _PHONE_HEIGHT, _PHONE_WIDTH)
    _save("phone.png", page.browser.get_screenshot_as_png())
    _resize(page, _HEIGHT)


def _choose_a_leaf(page: Page) -> None:
    """Draw one partition's network, and choose its first leaf of several fields."""
    page.find("#chosen option:nth-child(2)").click()
    page.tab("network")
    page.wait_until(lambda: int(page.data("#tree", "shown") or 0) > 1, "drawn")
    page.run("document.querySelector('#tree').focus()")
    tree = page.find("#tree")
    tree.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    for _ in range(20):
        if "Correlations" in page.text("#details"):
            break
        tree.send_keys(Keys.ARROW_DOWN)


def _resize(page: Page, height: int, width: int = _WIDTH) -> None:
    """Give the window a size, and wait until everything is drawn."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def _save(name: str, png: bytes) -> None:
    _IMAGES.mkdir(exist_ok=True)
    image = Image.open(BytesIO(png)).convert("RGB")
    # Few colours make small files; this way of choosing them keeps the rare ones.
    small = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    small.save(_IMAGES / name, optimize=True)
    print(_IMAGES / name, image.size)


if __name__ == "__main__":
    main()
