"""What is asked: the four subsets of OptimalThinkingBench, and a user's own subsets.

A subset lies on one of two sides, or on none. On the overthinking side (``"ovt"``) a right answer
counts less the more thinking tokens it took; on the underthinking side (``"ut"``) only accuracy
counts.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from data import Benchmark, Question, get_benchmark
from data.catalogue.underthinking import TASKS, gym_benchmark
from data.choices import LETTERS, letter_question
from data.draws import StableDraws
from data.errors import MisuseError, StoreError
from data.hints import did_you_mean
from data.optimal import prompt_text
from data.optimal.general import JUDGED, load_general
from data.progress import NOBODY, Progress
from data.prompts import Prompts
from stp.files import json_lines, read_json_lines, write_durably

Side = Literal["ovt", "ut", "none"]

GENERAL = "ovt-general"
BENCHMARKS: dict[str, tuple[Side, tuple[str, ...]]] = {
    "ovt-math": ("ovt", ("math500_level_1", "math500_level_2")),
    "ut-reasoning": ("ut", tuple(f"ut-{task.dataset}" for task in TASKS)),
    "ut-math": ("ut", ("aime2025", "hmmt_feb_2025")),
}
"""The subsets that are made of benchmarks; 133 questions, 550, and 60 (paper 004, section 2).

The paper's 133 questions of MATH's levels 1 and 2 are those of MATH-500.
"""
SUBSETS = ("ovt-math", GENERAL, "ut-reasoning", "ut-math")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question as a run asks it.

    Attributes
    ----------
    subset, side
        Where it counts.
    benchmark
        Which benchmark of the subset it is from.
    question
        What is asked, and how an answer is judged.
    instruction
        Follows the question.
    domain, answer_type, options
        Of a question of OvT-General; ``""`` and 0 otherwise (options: how many are shown).
    """

    subset: str
    side: Side
    benchmark: str
    question: Question
    instruction: str
    domain: str = ""
    answer_type: str = ""
    options: int = 0

    @property
    def key(self) -> str:
        """The item's name, unique within a run."""
        return f"{self.subset}/{self.benchmark}/{self.question.id}"

    def prompt_in(self, prompts: Prompts) -> str:
        """Return the user's message in a run's words."""
        return f"{self.question.prompt}\n\n{prompts.instruction(self.instruction)}"

    @property
    def judged(self) -> bool:
        """Whether a model may have to judge its answers."""
        return self.subset.startswith(GENERAL) or self.question.answer_kind == JUDGED


def load_items(
    subsets: Sequence[str],
    *,
    general: str | None = None,
    data_dir: Path | None = None,
    limit: int | None = None,
    progress: Progress = NOBODY,
) -> list[Item]:
    """Return the questions of subsets.

    Parameters
    ----------
    subsets
        Names of :data:`SUBSETS`, or ``"ovt:BENCHMARK"`` and ``"ut:BENCHMARK"`` for any benchmark
        of the registry, a user's TOML file, or ``gym:TASK`` as a subset of its own.
        ``"ovt-general+8"`` is OvT-General's choices with irrelevant options added up to 8; it
        counts on neither side.
    general
        Where OvT-General's questions are: a folder, a file or an id on the hub.
    data_dir
        Folder of question files, for benchmarks.
    limit
        Only this many of the first questions of each benchmark. Of OvT-General this many of every
        answer type, domains in turn.
    progress
        Told how many subsets are there, and of how many.

    Raises
    ------
    data.errors.MisuseError
        If a subset is unknown or named twice, or its questions cannot be read.
    """
    if not subsets:
        raise MisuseError(f"no subset; choose from {', '.join(SUBSETS)}, ovt:NAME and ut:NAME")
    if len(set(subsets)) < len(subsets):
        raise MisuseError(f"a subset is named twice in {', '.join(subsets)}")
    items: list[Item] = []
    parts = {name: _parts(name) for name in subsets if name.partition("+")[0] != GENERAL}
    for number, name in enumerate(subsets):
        progress(number, len(subsets))
        if name in parts:
            side, benchmarks = parts[name]
            items += _benchmark_items(name, side, benchmarks, data_dir, limit)
            continue
        _, more_options, wanted = name.partition("+")
        chosen = _general_items(general, limit)
        if more_options:
            pool = _general_items(general, None)
            chosen = with_irrelevant_options(chosen, name, wanted, pool=pool)
        items += chosen
    return items


def _benchmark_items(
    subset: str, side: Side, names: Sequence[str], data_dir: Path | None, limit: int | None
) -> list[Item]:
    return [
        Item(
            subset=subset,
            side=side,
            benchmark=benchmark.name,
            question=question,
            instruction=benchmark.instruction,
        )
        for benchmark in map(_benchmark, names)
        for question in benchmark.load(data_dir, limit=limit)
    ]


def _benchmark(name: str) -> Benchmark:
    """Return a benchmark of the registry, or ``gym:TASK``: any task of Reasoning Gym."""
    kind, colon, task = name.partition(":")
    if not (colon and kind == "gym"):
        return get_benchmark(name)
    parameters = next((each.parameters for each in TASKS if each.dataset == task), {})
    return gym_benchmark(task, parameters)


def _parts(name: str) -> tuple[Side, tuple[str, ...]]:
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    side, colon, benchmark = name.partition(":")
    if colon and side == "ovt":
        return "ovt", (benchmark,)
    if colon and side == "ut":
        return "ut", (benchmark,)
    raise MisuseError(
        f"no subset {name!r}{did_you_mean(name, SUBSETS)} (there are {', '.join(SUBSETS)}, and "
        "ovt:BENCHMARK and ut:BENCHMARK for any other)"
    )


def _general_items(source: str | None, limit: int | None) -> list[Item]:
    if source is None:
        raise MisuseError(
            f"{GENERAL} needs its questions: --general FOLDER (made by `stp optimal build`), a "
            "file, or facebook/optimal_thinking_bench"
        )
    questions = load_general(source)
    if limit is not None:
        taken: dict[tuple[str, str], int] = {}
        ranks: list[tuple[int, int]] = []
        for question in questions:
            pair = (question.answer_type, question.domain)
            ranks.append((taken.get(pair, 0), len(ranks)))
            taken[pair] = taken.get(pair, 0) + 1
        counts: dict[str, int] = {}
        kept = set()
        for _, place in sorted(ranks):
            kind = questions[place].answer_type
            if counts.get(kind, 0) < limit:
                counts[kind] = counts.get(kind, 0) + 1
                kept.add(place)
        questions = [question for place, question in enumerate(questions) if place in kept]
    instruction = prompt_text("answer")
    return [
        Item(
            subset=GENERAL,
            side="ovt",
            benchmark=GENERAL,
            question=question.as_question(),
            instruction=instruction,
            domain=question.domain,
            answer_type=question.answer_type,
            options=len(question.options),
        )
        for question in questions
    ]


def with_irrelevant_options(
    items: Sequence[Item], subset: str, wanted: str, *, pool: Sequence[Item]
) -> list[Item]:
    """Return the choices among items with options added that have nothing to do with them.

    Added options are options of questions of other domains (paper 004, D.2), drawn from the
    question's id; the right option keeps its text and gets another letter.

    Parameters
    ----------
    items
        Items of OvT-General.
    subset
        Name of the new subset.
    wanted
        How many options each has then; questions that have more already are left out.
    pool
        Items whose options may be added.

    Raises
    ------
    data.errors.MisuseError
        If the number is out of range, or the other domains have too few options.
    """
    total = int(wanted) if wanted.isdecimal() else 0
    if not 2 <= total <= len(LETTERS):
        raise MisuseError(f"{subset}: write {GENERAL}+N, with N options from 2 to {len(LETTERS)}")
    domain_of = {
        option: item.domain
        for item in pool
        if item.answer_type == "choice"
        for option in item.question.choices
    }
    made = []
    for item in items:
        question = item.question
        if item.answer_type != "choice" or item.options > total:
            continue
        draws = StableDraws("irrelevant", question.id)
        others = [o for o, d in domain_of.items() if d != item.domain and o not in question.choices]
        added = draws.shuffled(sorted(others))[: total - item.options]
        if len(added) < total - item.options:
            raise MisuseError(
                f"{subset}: the other domains have {len(others)} options for {question.id}; "
                f"{total - item.options} are needed"
            )
        options = draws.shuffled([*question.choices, *added])
        right = question.choices[LETTERS.index(question.reference)]
        stem = question.prompt.rpartition("\n\n")[0]
        made.append(
            replace(
                item,
                subset=subset,
                side="none",
                benchmark=subset,
                options=total,
                question=letter_question(
                    question.id, stem, options, LETTERS[options.index(right)], question.id
                ),
            )
        )
    if not made:
        raise MisuseError(f"{subset}: no choice has {total} options or fewer")
    return made


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Keep items in a file, one JSON object a line.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    write_durably(path, json_lines(map(asdict, items)))


def read_items(path: Path) -> list[Item]:
    """Read items that were kept.

    Raises
    ------
    data.errors.StoreError
        If the file is damaged.
    """
    items: dict[str, Item] = {}
    for number, values in enumerate(read_json_lines(path), start=1):
        item = _read_item(values, f"{path}, line {number}")
        if item.key in items:
            raise StoreError(f"{path}: the question {item.key} is there twice; remove one")
        items[item.key] = item
    return list(items.values())


def _read_item(values: dict[str, Any], where: str) -> Item:
    try:
        question = values.pop("question")
        question["choices"] = tuple(question["choices"])
        return Item(**values, question=Question(**question))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{where}: is not a question of a run ({error!r})") from error
