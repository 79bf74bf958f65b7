"""Asking: questions to any model, and stored responses.

>>> from stp.asking import Settings
>>> Settings(max_tokens=1024).dress("What is 2 + 2?")
'What is 2 + 2?'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
