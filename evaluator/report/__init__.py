"""The report of a campaign: one HTML page that works from disk, and figures beside it.

``build_report(campaign_url, out_dir)`` is all that a caller needs. The modules: ``data`` (what a
page is made from), ``load`` (from a campaign), ``html`` (the page), ``build`` (files on disk). Its
charts are the explorer's, which shows the trajectories too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
