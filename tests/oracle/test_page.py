"""The page "Frontiers for your own curves": its programs run, and print what it says."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "frontiers.md"
# `expression    # [values]`: what the page says that an expression gives.
CLAIM = re.compile(r"^(?P<expression>[^#=\n]+?)\s+# (?P<values>[\[(\d].*?)(?:: .*)?$")


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def test_the_pages_programs_run_and_their_claims_hold():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    names: dict = {}
    claims = 0
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        for line in block.splitlines():
            claim = CLAIM.match(line)
            if claim:
                said = eval(f"[{claim['values']}]")
                said = said[0] if len(said) == 1 else said
                assert plain(eval(claim["expression"], names)) == plain(said), line
                claims += 1
    assert claims >= 8
