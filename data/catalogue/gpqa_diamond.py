"""GPQA-Diamond (Rein et al. 2023): 198 graduate questions in science, four options each.

A record's columns (its authors ask that no question be posted in the clear)::

    {"Record ID": "rec...", "Question": "...", "Correct Answer": "...",
     "Incorrect Answer 1": "...", "Incorrect Answer 2": "...", "Incorrect Answer 3": "..."}

The file's right answer is always the first: the order of the options and the letter of the right
one follow from a stored seed, so that each letter is right 49 or 50 times.
"""

from collections.abc import Sequence

from data.benchmark import CHOICE_INSTRUCTION, Benchmark
from data.choices import balanced_letters, letter_question, shuffled_options
from data.files import RawRow, text_of
from data.public import PublicSource
from data.question import Question

WRONG_COLUMNS = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row, its options in the stored order."""
    places = [f"{where}, row {number}" for number in range(1, len(rows) + 1)]
    ids = [text_of(row, "Record ID", place) for row, place in zip(rows, places, strict=True)]
    letters = balanced_letters(ids, option_count=1 + len(WRONG_COLUMNS))
    questions = []
    for row, place, question_id, letter in zip(rows, places, ids, letters, strict=True):
        options = shuffled_options(
            text_of(row, "Correct Answer", place),
            [text_of(row, column, place) for column in WRONG_COLUMNS],
            letter,
            question_id,
        )
        text = text_of(row, "Question", place)
        questions.append(letter_question(question_id, text, options, letter, place))
    return questions


BENCHMARK = Benchmark(
    name="gpqa_diamond",
    group="GPQA",
    instruction=CHOICE_INSTRUCTION,
    answer_kind="choice",
    expected_count=198,
    source=PublicSource(
        repository="Idavidrein/gpqa",
        revision="633f5ee89ab8ad4522a9f850766b73f62147ffdd",
        files=("gpqa_diamond.csv",),
        licence="CC-BY-4.0 (not to be posted in the clear)",
        rows_expected=198,
        local_names=("gpqa_diamond",),
        parse=parse,
        gated=True,
    ),
)
