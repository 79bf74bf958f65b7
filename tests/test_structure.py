"""How the packages hang together: no import circles, one meaning to a public class name."""

import ast
import graphlib
from collections import defaultdict
from pathlib import Path

import pytest

from tests.requirements import require_module

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("data", "stp", "oracle", "baselines", "evaluator")


def circle(imports):
    """Return the modules of a circle; none if there is none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_no_modules_import_each_other():
    """Imports inside functions count; those for types alone do not."""
    require_module("grimp")
    import grimp

    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 400
    assert circle(imports) == []


def public_classes():
    """Return where each public class and type alias of the product is defined."""
    found = defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].add(path.relative_to(ROOT).as_posix())
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    name, made = node.targets[0].id, ast.unparse(node.value)
                    if name[0].isupper() and not name.isupper() and not made.startswith("TypeVar"):
                        found[name].add(path.relative_to(ROOT).as_posix())
    return {name: places for name, places in found.items() if not name.startswith("_")}


def test_a_public_class_name_means_one_thing():
    twice = {name: places for name, places in public_classes().items() if len(places) > 1}
    assert twice == {}


@pytest.mark.parametrize("package", ["stp", "evaluator"])
def test_few_modules_lie_loose(package):
    loose = [path.name for path in (ROOT / package).glob("*.py")]
    assert len(loose) <= {"stp": 16, "evaluator": 6}[package]
