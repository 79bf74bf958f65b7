"""What is asked: questions, benchmarks, generated tasks, and the errors of this project."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
