"""Figures of the analysis, drawn with matplotlib, for print.

One module a kind of figure; each function returns a :class:`matplotlib.figure.Figure` and touches
no global state. :func:`evaluator.present.figure_style.save` writes one as PNG and PDF.

On a user's own curves, as in a notebook (``docs/examples/notebook.ipynb``):

>>> from evaluator.figures import frontiers, latent_curve, trajectory_curve
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
