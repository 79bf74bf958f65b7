"""Time the explorer on a campaign, in a headless Chromium: opening, all rows, filters, memory.

Needs Linux, chromium, chromedriver and selenium. The first time a campaign is opened its rows are
read from all of its verdicts and kept; run it twice. Memory is what server and browser hold beyond
files that the system may drop, shared pages counted once; of the browser also what it holds with an
empty page. CPU seconds are of all processes, for machines on which others work::

    python scripts/synthetic_campaign.py big --scale 1.09      # 100,000 trajectories
    python scripts/benchmarks/explorer.py big
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_SETTLED = 2.0
"""Seconds that processes have to come to rest before their memory is read."""
_READY = "const v = document.getElementById('view'); return !!v && v.dataset.ready !== undefined"
_FIRST = "return document.querySelectorAll('#view tbody tr').length > 0"
_FILTER = """
const field = document.querySelector('#filter-text'), table = document.querySelector('.sortable');
delete table.dataset.filterMilliseconds;
field.value = arguments[0]; field.dispatchEvent(new Event('input'));
"""
_FILTERED = "return document.querySelector('.sortable').dataset.filterMilliseconds"


def main(
    campaign: Annotated[Path, typer.Argument(help="A campaign's folder.")],
    patience: Annotated[float, typer.Option(help="Most seconds to wait for a view.")] = 600.0,
) -> None:
    """Print seconds, milliseconds and megabytes."""
    command = [sys.executable, "-m", "stp.cli.main", "explore", str(campaign), "--no-browser"]
    began = started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        typer.echo(f"server ready after {time.monotonic() - began:.1f} s")
        waited = time.monotonic()
        options = Options()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"):
            options.add_argument(flag)
        # The cells that are read one after the other would hold back the end of loading.
        options.page_load_strategy = "none"
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        driver.set_script_timeout(patience)
        # A person's browser runs already.
        try:
            driver.get("about:blank")
            time.sleep(_SETTLED)
            empty = _private(driver.service.process.pid)
            idle = _cpu(driver.service.process.pid)
            browser = time.monotonic() - waited
            began = time.monotonic()
            driver.get(address)
            _wait(driver, _FIRST, patience)
            typer.echo(f"first page after {time.monotonic() - began:.2f} s")
            _wait(driver, _READY, patience)
            typer.echo(f"figures of all cells after {time.monotonic() - began:.1f} s")
            opened = time.monotonic() - started - browser
            typer.echo(f"opened after {opened:.2f} s, the server's start included")
            used = _cpu(server.pid), _cpu(driver.service.process.pid) - idle
            typer.echo(f"CPU until then: server {used[0]:.1f} s, browser {used[1]:.1f} s")
            time.sleep(_SETTLED)
            _say_memory("opened", server.pid, driver, empty)
            began = time.monotonic()
            driver.execute_script("location.hash = '/0/all'")
            _wait(driver, "return !!document.querySelector('#filter-shape')", patience)
            rows = driver.execute_script(
                "return document.querySelector('.note[role=status]').innerText"
            )
            typer.echo(f"all trajectories after {time.monotonic() - began:.2f} s: {rows}")
            for words in ("1", "12", "math 3", ""):
                driver.execute_script(_FILTER, words)
                _wait(driver, _FILTERED, patience)
                typer.echo(f"filter {words!r}: {driver.execute_script(_FILTERED)} ms")
            time.sleep(_SETTLED)
            _say_memory("after filters", server.pid, driver, empty)
        finally:
            driver.quit()
            server.terminate()


def _wait(driver: webdriver.Chrome, condition: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not driver.execute_script(condition):
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {condition}")
        time.sleep(0.02)


def _say_memory(when: str, server: int, driver: webdriver.Chrome, empty: float) -> None:
    held = _private(server), _private(driver.service.process.pid)
    typer.echo(
        f"{when}: server {held[0]:,.0f} MB and browser {held[1]:,.0f} MB (with an empty page "
        f"{empty:,.0f}), together {sum(held):,.0f} MB"
    )


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of those that it began and that still run."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu(child) for child in _children(pid))


def _private(pid: int) -> float:
    """Return the megabytes that a process and those that it began hold, files left out."""
    total = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss_Anon", "Pss_Shmem"):
            total += int(rest.split()[0])
    return total / 2**10 + sum(_private(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for tasks in Path(f"/proc/{pid}/task").iterdir()
        for child in (tasks / "children").read_text(encoding="utf-8").split()
    ]


if __name__ == "__main__":
    typer.run(main)
