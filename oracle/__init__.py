"""The best token-accuracy trade-off that a strategy could reach, exactly.

Names are loaded on first use, so that ``import oracle`` costs nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
