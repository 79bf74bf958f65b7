"""Statistics of curves and their tables: OR, AD, intervals, thinning, audits (paper 002)."""
