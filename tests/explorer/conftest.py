"""Kept rows go into a folder of the tests' own."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("cache")
        patched.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
