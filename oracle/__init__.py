"""The best token-accuracy trade-off that a strategy could reach, exactly.

Names are loaded on first use, so that ``import oracle`` costs nothing.
"""

import lazy_loader

import stp  # noqa: F401 (finds compiled code a folder, before numba looks for one)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
