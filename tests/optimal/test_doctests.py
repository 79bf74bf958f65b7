"""The examples in the documentation of these modules run as they stand."""

import doctest
from importlib import import_module

import pytest

MODULES = (
    "data.optimal.domains",
    "evaluator.answers.judged",
    "evaluator.answers.reasoning_gym",
    "evaluator.optimal.analyses",
    "evaluator.optimal.judge",
    "evaluator.optimal.methods",
    "evaluator.optimal.metrics",
    "stp.asking.model_names",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
