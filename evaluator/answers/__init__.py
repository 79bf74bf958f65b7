r"""Whether an answer is right.

``check(question, response)`` for one response, `Checker` for many. Sees questions and the text of
responses, nothing of models, tokens or campaigns.

>>> from data.question import Question
>>> question = Question(id="1", prompt="", reference="[3,8)", answer_kind="math")
>>> check(question, r"The range is \[ \boxed{[3,8)} \]").right
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
