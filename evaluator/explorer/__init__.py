"""The pages that people open every day: look at campaigns, runs and leaderboards.

What a page shows comes in pieces: JSON values with a name, such as ``0/cell/2`` for the rows of the
third cell of the first folder. A :class:`~evaluator.explorer.source.Source` makes the pieces of one
folder. The server (``server``) makes a piece when it is looked at; the static form (``static``)
writes all of them beforehand. Both give a piece as a script that registers its value, so the
page is the same, and works from disk too, where a browser lets a page read nothing but scripts.

The page (``page.html``, ``app/*.js``) sorts, filters and draws. Every text of a folder becomes a
text node there, never HTML, and the page's policy runs only our own script files. Charts are drawn
by Apache ECharts, which is shipped (``vendor/``) with its licence.

>>> from evaluator.explorer import open_sources
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
