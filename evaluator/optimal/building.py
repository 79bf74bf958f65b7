"""Making OvT-General (paper 004, section 2.1): generate, check, answer, judge, refill.

A generating model writes questions for every pair of a domain and an answer type; each is answered
k times by a second model, and stays only if a judge finds all k answers to be the reference. Pairs
that lack questions are asked for more, round after round. Every reply is stored under a name made
of pair, round and place, so a build that was stopped continues where it was, and the same replies
give the same data set.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from data.optimal import prompt_text
from data.optimal.general import GeneralQuestion
from data.progress import NOBODY, Progress
from evaluator.answers import Checker
from evaluator.answers.judged import boxed_or_whole
from evaluator.optimal.card import write_data_set
from evaluator.optimal.formats import Dropped, SeenQuestions, parse_reply
from evaluator.optimal.grading import decide_by_rule, reference_text
from evaluator.optimal.judge import Case, Judgement, ModelJudge, agreement
from evaluator.optimal.recipe import KIND, Built, QuestionSort, Recipe
from evaluator.optimal.subsets import GENERAL, Item
from evaluator.runs.asking import Missing, ask_missing, check_answered, opened_once
from evaluator.runs.folder import locked_folder
from evaluator.runs.plain import to_plain
from evaluator.runs.record import RunRecord, begin_run, check_folder, finish_run
from stp.asking import ModelSpec, Request, Responder, Response, ResponseStore
from stp.seeds import sample_seed


def build(
    recipe: Recipe,
    folder: Path,
    *,
    generator: str | ModelSpec | Responder,
    answerer: str | ModelSpec | Responder,
    judge: str | ModelSpec | Responder,
    checker: Checker | None = None,
    progress: Progress = NOBODY,
) -> Built:
    """Make a data set, or continue making it.

    Parameters
    ----------
    recipe
        What to make.
    folder
        Where replies and the data set go.
    generator, answerer, judge
        The models that write questions, answer them, and compare answers; one may do all.
    checker
        Decides by rule where the answer type allows it; by default one of its own.
    progress
        Told how far each stage is.

    Raises
    ------
    data.errors.StoreMismatchError
        If the folder holds a data set of another recipe, or replies of other weights.
    data.errors.MisuseError
        If it holds something else; nothing is written there.
    data.errors.StoreError
        If another process works in the folder.
    data.errors.EngineError
        If a model fails. What was answered is kept.
    """
    check_folder(folder, KIND)
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(opened_once())
        named = {"generator": generator, "answerer": answerer, "judge": judge}
        models = {role: opened(model) for role, model in named.items()}
        checker = checker or stack.enter_context(Checker())
        stack.enter_context(locked_folder(folder))
        record = begin_run(
            folder,
            RunRecord(
                kind=KIND,
                name=GENERAL,
                asked=to_plain(recipe),
                models={role: model.describe() for role, model in models.items()},
            ),
            replies=[folder / "replies" / f"{role}.jsonl" for role in models],
            free=["rounds"],
        )
        work = _Work(recipe, folder, models, checker, progress)
        rounds = 0
        for number in range(recipe.rounds):
            lacking = work.lacking()
            if not lacking:
                break
            work.round(number, lacking)
            rounds = number + 1
        built = Built(
            questions=tuple(work.questions()),
            dropped=tuple(work.dropped),
            agreement=agreement(work.judgements),
            rounds=rounds,
            by_rule=work.by_rule,
            by_judge=work.by_judge,
        )
        write_data_set(folder, recipe, built, finish_run(folder, record).models)
        return built


class _Work:
    """A build on its way: what was accepted and dropped so far."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        models: Mapping[str, Responder],
        checker: Checker,
        progress: Progress,
    ) -> None:
        self._recipe = recipe
        self._models = models
        self._names = {
            role: str(model.describe().get("model") or "model") for role, model in models.items()
        }
        self._replies = folder / "replies"
        self._checker = checker
        self._progress = progress
        self._judge = ModelJudge(
            models["judge"],
            self._replies / "judge.jsonl",
            repeats=recipe.judge_repeats,
            prompt=recipe.prompts.text("judge"),
        )
        self._seen = SeenQuestions()
        self._tried: dict[QuestionSort, list[str]] = {pair: [] for pair in recipe.pairs()}
        self._accepted: dict[QuestionSort, list[GeneralQuestion]] = {
            pair: [] for pair in recipe.pairs()
        }
        self.dropped: list[Dropped] = []
        self.judgements: list[Judgement] = []
        self.by_rule = self.by_judge = 0

    def lacking(self) -> list[QuestionSort]:
        """Return the pairs that have too few questions."""
        return [p for p, found in self._accepted.items() if len(found) < self._recipe.per_pair]

    def questions(self) -> list[GeneralQuestion]:
        """Return what was accepted, pair by pair."""
        return [q for found in self._accepted.values() for q in found[: self._recipe.per_pair]]

    def round(self, number: int, lacking: Sequence[QuestionSort]) -> None:
        """Generate for pairs, filter, and accept what stays."""
        requests = {self._name(pair, number): pair for pair in lacking}
        prompts = {name: self._prompt(pair) for name, pair in requests.items()}
        replies = self._ask(
            "generator",
            [
                Request(id=name, prompt=prompt, seed=self._seed(name, "generate", 0))
                for name, prompt in prompts.items()
            ],
            f"writing questions (round {number + 1})",
        )
        candidates = self._fresh(requests, replies)
        verdicts = self._agreeing(candidates, number)
        hashes = {
            name: hashlib.sha256(prompt.encode()).hexdigest() for name, prompt in prompts.items()
        }
        for candidate, agreed, ruled, undecided in verdicts:
            pair = (candidate.domain, candidate.answer_type)
            if agreed < self._recipe.k:
                self.dropped.append(self._lost(candidate, agreed, undecided))
                continue
            reply = candidate.id.rpartition("-")[0]
            provenance = {
                **self._names,
                "reply": reply,
                "round": number + 1,
                "seed": self._seed(reply, "generate", 0),
                "prompt_sha256": hashes[reply],
                "answers": self._recipe.k,
                "agreeing": agreed,
                "agreeing_by_rule": ruled,
            }
            self._accepted[pair].append(replace(candidate, provenance=provenance))

    def _lost(self, candidate: GeneralQuestion, agreed: int, undecided: int) -> Dropped:
        """Say why a candidate does not stay: answers that differ, or a judge that says nothing."""
        k = self._recipe.k
        stage, reason = "answers", f"{agreed} of {k} answers agree with the reference"
        if agreed + undecided == k:
            stage = "judge"
            reason = f"the judge gave no verdict on {undecided} of {k} answers; the others agree"
        return Dropped(
            id=candidate.id,
            domain=candidate.domain,
            answer_type=candidate.answer_type,
            stage=stage,
            reason=reason,
            question=candidate.question,
        )

    def _name(self, pair: QuestionSort, number: int) -> str:
        domain = "".join(c if c.isalnum() else "-" for c in pair[0].lower())
        return f"{domain}-{pair[1]}-r{number + 1}"

    def _prompt(self, pair: QuestionSort) -> str:
        domain, kind = pair
        wanted = self._recipe.per_pair - len(self._accepted[pair])
        keys = 'the keys "question" (a text) and "answer" (a text)'
        if kind == "choice":
            keys = (
                'the keys "question" (a text), "options" (a list of texts) and "answer" (the text '
                "of the right option)"
            )
        tried = self._tried[pair]
        avoid = ""
        if tried:
            avoid = "Do not ask these again:\n" + "\n".join(f"- {text}" for text in tried[-30:])
        return Template(self._recipe.prompts.text("generate")).substitute(
            domain=domain,
            format=Template(self._recipe.prompts.text(f"format-{kind}")).substitute(
                options=self._recipe.options_of(domain)
            ),
            count=wanted,
            avoid=avoid,
            keys=keys,
        )

    def _fresh(
        self, requests: dict[str, QuestionSort], replies: dict[str, Response]
    ) -> list[GeneralQuestion]:
        """Return the candidates of all replies that pass the checks and repeat nothing."""
        fresh = []
        for name, (domain, kind) in requests.items():
            parsed = parse_reply(
                replies[name].text,
                prefix=name,
                domain=domain,
                answer_type=kind,
                options=self._recipe.options_of(domain),
            )
            self.dropped += parsed.dropped
            for candidate in parsed.candidates:
                self._tried[domain, kind].append(candidate.question)
                same = self._seen.repeated(candidate)
                if same is None:
                    fresh.append(candidate)
                    continue
                self.dropped.append(
                    Dropped(
                        id=candidate.id,
                        domain=domain,
                        answer_type=kind,
                        stage="duplicate",
                        reason=f"repeats {same}",
                        question=candidate.question,
                    )
                )
        return fresh

    def _agreeing(
        self, candidates: Sequence[GeneralQuestion], number: int
    ) -> list[tuple[GeneralQuestion, int, int, int]]:
        """Return how many of k answers agree with each candidate.

        With it how many of these by rule, and on how many others the judge gave no verdict.
        """
        k = self._recipe.k
        items = {candidate.id: _item(candidate) for candidate in candidates}
        replies = self._ask(
            "answerer",
            [
                Request(
                    id=f"{name}/{sample}",
                    prompt=item.prompt_in(self._recipe.prompts),
                    seed=self._seed(name, "answer", sample),
                )
                for sample in range(k)
                for name, item in items.items()
            ],
            f"answering them {k} times (round {number + 1})",
        )
        texts = {name: [replies[f"{name}/{s}"].text for s in range(k)] for name in items}
        ruled = {
            name: [decide_by_rule(items[name], text, self._checker) for text in texts[name]]
            for name in items
        }
        open_cases = {
            (name, s): Case(
                question=items[name].question.prompt,
                reference=reference_text(items[name]),
                answer=boxed_or_whole(texts[name][s]) or "",
            )
            for name in items
            for s in range(k)
            if ruled[name][s] is None
            # One answer that a rule calls wrong drops the question: nobody need judge the rest.
            and not any(verdict is not None and not verdict.right for verdict in ruled[name])
        }
        judged = self._judge.judge(
            list(open_cases.values()),
            self._progress.stage(f"judging (round {number + 1})"),
        )
        self.judgements += judged
        self.by_rule += sum(v is not None for verdicts in ruled.values() for v in verdicts)
        self.by_judge += len(judged)
        right = dict(zip(open_cases, judged, strict=True))
        outcome = []
        for candidate in candidates:
            by_rule = [v is not None and v.right for v in ruled[candidate.id]]
            by_judge = [
                right[candidate.id, s].right for s in range(k) if (candidate.id, s) in right
            ]
            agreed = sum(by_rule) + by_judge.count(True)
            outcome.append((candidate, agreed, sum(by_rule), by_judge.count(None)))
        return outcome

    def _ask(self, role: str, requests: Sequence[Request], doing: str) -> dict[str, Response]:
        store = ResponseStore(self._replies / f"{role}.jsonl")
        missing = store.missing(requests)
        (errors,) = ask_missing(
            self._models[role],
            Missing(
                store=store,
                requests=missing,
                settings=self._recipe.settings,
                total=len(requests),
                progress=self._progress.within(doing),
            ),
        )
        check_answered(errors, len(missing), f"the {role}")
        return store.read()

    def _seed(self, name: str, phase: str, sample: int) -> int:
        return sample_seed(
            self._recipe.seed,
            model="recipe",
            benchmark=GENERAL,
            question=name,
            trajectory=sample,
            phase=phase,
        )


def _item(candidate: GeneralQuestion) -> Item:
    return Item(
        subset=GENERAL,
        side="ovt",
        benchmark=GENERAL,
        question=candidate.as_question(),
        instruction=prompt_text("answer"),
        answer_type=candidate.answer_type,
    )
