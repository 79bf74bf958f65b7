"""The documentation site: built without a warning, and every link in it leads somewhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.requirements import require_module

ROOT = Path(__file__).parent.parent


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self):
        super().__init__()
        self.targets, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.anchors.add(found["id"])
        for name in ("href", "src"):
            if found.get(name) and tag in ("a", "img", "script", "link"):
                self.targets.append(found[name])


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(tmp_path):
    require_module("mkdocs")
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pages = {}
    for path in site.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    assert len(pages) > 25
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            named = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not named.exists() or (
                parts.fragment
                and named in pages
                and unquote(parts.fragment) not in pages[named].anchors
            ):
                broken.append(f"{path.relative_to(site)}: {target}")
    assert broken == []
    assert "largest_falls" in (site / "api" / "analysis.html").read_text(encoding="utf-8")
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
