"""The report of a campaign: one HTML page that works from disk, and figures beside it.

``build_report(campaign_url, out_dir)`` is all that a caller needs. The modules: ``data`` (what a
page is made from), ``selection`` (which trajectories it shows), ``load`` (from a campaign),
``payload`` (numbers and texts for the page's script),
``html`` (the page), ``build`` (files on disk).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
