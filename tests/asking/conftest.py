import pytest


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Servers of these tests are this machine's own, whatever its settings say."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
