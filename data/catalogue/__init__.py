"""The benchmarks of this project, one module each.

A module here exposes ``BENCHMARK`` (one :class:`data.benchmark.Benchmark`) or ``BENCHMARKS``
(several). Nothing else is needed: :mod:`data.registry` finds it.
"""
