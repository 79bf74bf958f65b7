"""Figures of the analysis, drawn with matplotlib, for print.

One module a kind of figure; each function returns a :class:`matplotlib.figure.Figure` and touches
no global state. :func:`evaluator.present.figure_style.save` writes one as PNG and PDF.
"""
