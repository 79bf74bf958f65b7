"""What OvT-General is made of, and what came of making it (paper 004, section 2.1)."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from data.errors import MisuseError
from data.hints import did_you_mean
from data.optimal.domains import domain_names
from data.optimal.general import ANSWER_TYPES, AnswerType, GeneralQuestion
from data.prompts import Prompts
from evaluator.optimal.formats import LEAST_OPTIONS, MOST_OPTIONS, Dropped
from evaluator.optimal.judge import Agreement
from stp.asking import Settings

PER_PAIR = 5
K = 8
ROUNDS = 3
SETTINGS = Settings(temperature=0.6, top_p=1.0, max_tokens=4096)
KIND = "stp optimal build"

QuestionSort = tuple[str, AnswerType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a data set is made of.

    Attributes
    ----------
    domains
        By default the 72 of :mod:`data.optimal.domains`.
    answer_types
        Of :data:`data.optimal.general.ANSWER_TYPES`.
    per_pair
        Questions wanted for each pair of domain and answer type.
    k
        Answers to each question; all have to agree with the reference.
    rounds
        Times that a pair is asked for questions at most.
    options
        Numbers of options that choices have, in turn over the domains.
    judge_repeats
        Votes of the judge on each answer.
    seed
        What the seeds of all replies are made from.
    settings
        How generator and answerer are sampled.
    prompts
        In which words all of them are asked.
    """

    domains: tuple[str, ...] = field(default_factory=domain_names)
    answer_types: tuple[AnswerType, ...] = ANSWER_TYPES
    per_pair: int = PER_PAIR
    k: int = K
    rounds: int = ROUNDS
    options: tuple[int, ...] = tuple(range(LEAST_OPTIONS, MOST_OPTIONS + 1))
    judge_repeats: int = 1
    seed: int = 0
    settings: Settings = SETTINGS
    prompts: Prompts = field(default_factory=Prompts)

    def __post_init__(self) -> None:
        for name in ("per_pair", "k", "rounds", "judge_repeats"):
            if getattr(self, name) < 1:
                raise MisuseError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.k > 1 and (greedy := self.settings.greedy) is not None:
            raise MisuseError(
                f"with {greedy} all answers to a question are copies, and k = {self.k} of them say "
                "no more than one: set k to 1, or sample"
            )
        if not self.domains or len(set(self.domains)) < len(self.domains):
            raise MisuseError("domains must be named, each once")
        if not self.answer_types or len(set(self.answer_types)) < len(self.answer_types):
            raise MisuseError(
                f"answer types must be named, each once, of {', '.join(ANSWER_TYPES)}"
            )
        for kind in self.answer_types:
            if kind not in ANSWER_TYPES:
                raise MisuseError(
                    f"no answer type {kind!r}{did_you_mean(kind, ANSWER_TYPES)} (there are "
                    f"{', '.join(ANSWER_TYPES)})"
                )
        for count in self.options:
            if not LEAST_OPTIONS <= count <= MOST_OPTIONS:
                raise MisuseError(
                    f"{count} options; a choice has {LEAST_OPTIONS} to {MOST_OPTIONS}"
                )

    def pairs(self) -> list[QuestionSort]:
        """Return all pairs of constraints."""
        return [(domain, kind) for domain in self.domains for kind in self.answer_types]

    def options_of(self, domain: str) -> int:
        """Return how many options the choices of a domain have."""
        return self.options[self.domains.index(domain) % len(self.options)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build gave.

    Attributes
    ----------
    questions
        The data set.
    dropped
        What was left out, and why.
    agreement
        How repeated judgements agreed.
    rounds
        Rounds that were needed.
    by_rule, by_judge
        Answers that a rule decided, and that the judge did.
    """

    questions: tuple[GeneralQuestion, ...]
    dropped: tuple[Dropped, ...]
    agreement: Agreement
    rounds: int
    by_rule: int
    by_judge: int


def statistics(built: Built) -> dict[str, Any]:
    """Return what a data set consists of: counts by type, domain and discipline, and the losses."""
    kinds = Counter(question.answer_type for question in built.questions)
    domains = Counter(question.domain for question in built.questions)
    return {
        "questions": len(built.questions),
        "by_answer_type": dict(kinds),
        "by_domain": dict(domains),
        "by_discipline": dict(Counter(q.discipline for q in built.questions if q.discipline)),
        "by_options": {
            str(count): number
            for count, number in sorted(
                Counter(len(q.options) for q in built.questions if q.options).items()
            )
        },
        "dropped": dict(Counter(item.stage for item in built.dropped)),
        "rounds": built.rounds,
        "answers_decided_by_rule": built.by_rule,
        "answers_decided_by_judge": built.by_judge,
        "judge_agreement": asdict(built.agreement),
    }
