"""The servers that these tests ask are those of ``tests/asking``."""

from tests.asking.conftest import no_proxy

__all__ = ["no_proxy"]
