"""A headless Chromium, driven; and what every page is checked for."""

import time
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.requirements import require_axe, require_chromedriver, require_chromium

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
)
_READY = """
const view = document.getElementById("view");
return document.readyState === "complete" && (!view || view.dataset.ready !== undefined)
  && [...document.querySelectorAll(".echart")].filter((host) => host.offsetParent)
    .every((host) => host.dataset.drawn);
"""


class Page:
    """A browser with one window."""

    def __init__(self, driver):
        self.driver = driver

    def look(self, width=1400, *, dark=False):
        """Turn to a width in CSS pixels, and to light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        metrics = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, address):
        """Open an address again, and wait until all of it is shown."""
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait()

    def wait(self, condition=_READY, seconds=30):
        """Wait until a script says true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(condition):
                return
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {condition}; {self.run(_TEXT)}")

    def unfold(self):
        """Open all that is folded, and wait until it is shown."""
        self.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.wait()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def console(self):
        """Return what the console said since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def violations(self):
        """Return what axe-core finds, each with the first place."""
        self.run(require_axe().read_text(encoding="utf-8"))
        return self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then((r) => done(r.violations.map("
            "(v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].failureSummary}`)))"
        )

    def overflow(self):
        """Return by how many pixels the page is wider than the window."""
        return self.run("return document.documentElement.scrollWidth - window.innerWidth")


_TEXT = "return document.body ? document.body.innerText.slice(0, 400) : ''"


@contextmanager
def browser():
    """Yield a page; the browser ends with it."""
    options = Options()
    options.binary_location = str(require_chromium())
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(require_chromedriver())))
    try:
        yield Page(driver)
    finally:
        driver.quit()
