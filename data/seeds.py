"""The seed of everything that is drawn, unless another one is asked for (paper 002, A.5)."""

PAPER_SEED = 20260721
