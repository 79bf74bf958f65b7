"""How a model is prompted, and where its thinking ends and its answer starts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
