"""Finding benchmarks: by name, by entry point, and what is said if there is none."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from data import Benchmark, MisuseError, benchmark_names, get_benchmark, registry
from data.benchmark import GeneratedSource
from data.question import Question


def test_the_benchmarks_of_the_paper_and_the_others_are_there():
    names = set(benchmark_names())
    assert {
        "aime2024",
        "aime2025",
        "aime2026",
        "math500",
        "gpqa_diamond",
        "livecodebench",
        "math_level_1",
        "math_level_5",
        "hmmt_feb_2025",
        "gsm8k",
        "demo",
        "think-sum",
    } <= names
    counts = [get_benchmark(name).expected_count for name in ("aime2024", "aime2025", "aime2026")]
    counts += [
        get_benchmark(name).expected_count for name in ("math500", "gpqa_diamond", "livecodebench")
    ]
    assert sum(counts) == 963  # paper 002, A.1


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_says_what_it_is(name):
    benchmark = get_benchmark(name)
    assert benchmark.name == name
    assert benchmark.group and benchmark.instruction
    # How many questions OvT-General has is for the data set to say, whoever made it.
    assert benchmark.expected_count or name.startswith("ovt-general-")
    assert benchmark.source.licence and benchmark.source.describe()
    revision = getattr(benchmark.source, "revision", "0" * 40)
    assert len(revision) == 40 and set(revision) <= set("0123456789abcdef")


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(MisuseError, match="no benchmark 'math50'; did you mean 'math500'"):
        get_benchmark("math50")


def _benchmark(name: str) -> Benchmark:
    questions = [Question(id=f"{n}", prompt="?", reference="!", answer_kind="math") for n in "ab"]
    return Benchmark(
        name=name,
        group=name,
        instruction="Say.",
        answer_kind="math",
        expected_count=2,
        source=GeneratedSource(make=lambda n: questions[:n], count=2, description="made"),
    )


plugin = _benchmark("plugged")


def make_plugin() -> Benchmark:
    return plugin


def test_an_entry_point_adds_a_benchmark(monkeypatch):
    points = [
        EntryPoint("plugged", f"{__name__}:plugin", registry.ENTRY_POINT_GROUP),
        EntryPoint("other", f"{__name__}:make_plugin", registry.ENTRY_POINT_GROUP),
        EntryPoint("wrong", f"{__name__}:pytest", registry.ENTRY_POINT_GROUP),
        EntryPoint("gsm8k", f"{__name__}:plugin", registry.ENTRY_POINT_GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry._entry_points.cache_clear()
    try:
        assert "plugged" in benchmark_names()
        assert get_benchmark("plugged").load(limit=1)[0].id == "a"
        assert get_benchmark("gsm8k").expected_count == 1319, "ours cannot be replaced"
        with pytest.raises(MisuseError, match="gives the benchmark 'plugged'"):
            get_benchmark("other")
        with pytest.raises(MisuseError, match=r"not a data\.Benchmark"):
            get_benchmark("wrong")
    finally:
        registry._entry_points.cache_clear()


@pytest.mark.parametrize(
    "questions, message",
    [
        ([], "no questions"),
        ([("a", "?", "!"), ("a", "?", "!")], "row 2: the id 'a' is that of row 1"),
        ([("a", " ", "!"), ("b", "?", "!")], r"row 1 \(a\): empty question"),
        ([("a", "?", "!"), ("b", "?", "")], r"row 2 \(b\): empty reference"),
        ([("a", "?", "!")], "1 questions, and 2 are expected"),
    ],
)
def test_what_every_list_of_questions_must_satisfy(questions, message):
    made = [
        Question(id=i, prompt=prompt, reference=reference, answer_kind="math")
        for i, prompt, reference in questions
    ]
    benchmark = Benchmark(
        name="made",
        group="made",
        instruction="",
        answer_kind="math",
        expected_count=2,
        source=GeneratedSource(make=lambda n: made, count=2, description="made"),
    )
    with pytest.raises(MisuseError, match=message):
        benchmark.load()


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(MisuseError, match="limit must be at least 1"):
        get_benchmark("demo").load(limit=limit)


def test_the_demo_needs_no_file():
    questions = get_benchmark("demo").load(limit=7)
    assert len(questions) == 7
    assert questions == get_benchmark("demo").load()[:7]


def test_importing_data_loads_nothing_heavy():
    code = (
        "import sys, data; data.benchmark_names(); heavy = 'numpy pandas pyarrow datasets torch'; "
        "print([name for name in heavy.split() if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["AIME2025", "aime-2025", "AIME 2025", "aime2o25"])
def test_a_near_name_is_offered_whatever_its_case(name):
    with pytest.raises(MisuseError, match="did you mean 'aime2025'"):
        get_benchmark(name)
