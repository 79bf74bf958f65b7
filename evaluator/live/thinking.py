"""One trajectory, live: think to a step's end, read what the method needs, stop or go on, answer.

It asks an engine for trees and is sent what came of them (:mod:`stp.campaign.asks`), so that many
trajectories can be under way over one engine. Seeds are a campaign's: a trajectory that is not
stopped is the campaign's, token for token, and one that is stopped at position k answers as the
campaign's first probe there does.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from baselines.interface import Setting
from baselines.player import PlayedQuestion, Seat
from baselines.signals import PASS, cost_sources
from data import Question
from evaluator.live.policy import ANSWERS, CLOSED, HIDDEN, TRIALS, Policy
from evaluator.otbench.answer_numbers import AnswerNumbers
from evaluator.otbench.gather import DOUBT
from stp.campaign.asks import Ask, Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.prepare import Subject
from stp.campaign.signal_reader import trial_signals
from stp.campaign.signal_record import SignalSettings
from stp.campaign.signal_rows import ReadItem, position_columns, read_items
from stp.engines.base import Branch, Completion, PromptTree, TreeCompletions
from stp.prefixes import prefix_branch
from stp.seeds import sample_seed
from stp.segmentation import segment_causal

Reason = Literal["method", "end", "limit", "turn_end"]
"""Why the thinking ended: the method stopped it, the model closed it, its limit was reached, or the
model ended its turn within it (then there is no answer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all trajectories of a run have in common.

    Attributes
    ----------
    config
        Limits, step length and seed, as a campaign has them.
    subject
        How the model is prompted.
    policy
        Who stops the thinking; None for full thinking.
    signals
        How signals are read.
    layers
        Hidden states that the method needs, as numbers of layers.
    answer_of
        Finds the answer in a text, for methods that compare answers.
    piece_tokens
        Most tokens that are sampled before whoever listens is told; None for no limit.
    """

    config: CampaignConfig
    subject: Subject
    policy: Policy | None = None
    signals: SignalSettings = field(default_factory=SignalSettings)
    layers: tuple[int, ...] = ()
    answer_of: Callable[[Question, str], str | None] = lambda question, text: None
    piece_tokens: int | None = None


class Listener:
    """Who hears tokens while they are made; this one does not listen."""

    def thought(self, token_ids: tuple[int, ...]) -> None:
        """Take note of thinking tokens."""

    def answered(self, token_ids: tuple[int, ...]) -> None:
        """Take note of an answer's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTask:
    """A trajectory to make.

    Attributes
    ----------
    benchmark, question, trajectory
        Which one.
    prompt_ids, thinking_limit
        What it begins with, and how long it may think.
    lot
        See :class:`baselines.views.QuestionView`.
    setting
        Of the method; None for the policy's own.
    session
        A number that no other trajectory under way has.
    seed
        Replaces the campaign's seed.
    answer_tokens
        Most tokens of the answer; None for what the campaign gives.
    """

    benchmark: str
    question: Question
    trajectory: int
    prompt_ids: tuple[int, ...]
    thinking_limit: int
    lot: float
    session: int
    setting: Setting = None
    seed: int | None = None
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a method decided at a position: its score, where that is a number."""

    position: int
    tokens: int
    score: float | None
    stops: bool


@dataclass(slots=True, kw_only=True)
class Outcome:
    """A trajectory that was made.

    Attributes
    ----------
    reason
        Why its thinking ended.
    position, tokens
        Where: k and L(k).
    lengths
        L(0..k).
    thinking_ids
        All that was thought: more than L(k) tokens where a cap cut it.
    answer_ids, answer_finish
        The answer with what was written of it for the model; ``"none"`` if there is none.
    signal_tokens
        What the method's signals took, counted as OTBench does.
    decisions
        Of an early-exit method, at every position.
    seconds
        From its beginning to its end, others beside it included.
    """

    reason: Reason
    position: int
    tokens: int
    lengths: tuple[int, ...]
    thinking_ids: tuple[int, ...]
    answer_ids: tuple[int, ...] = ()
    answer_finish: str = "none"
    signal_tokens: int = 0
    decisions: tuple[Decision, ...] = ()
    seconds: float = 0.0


def live_trajectory(
    task: LiveTask, plan: Plan, seat: Seat | None, listener: Listener | None = None
) -> Asking[Outcome]:
    """Ask for a trajectory, stopped as the method says; return it.

    Parameters
    ----------
    task, plan
        What is asked for.
    seat
        Where the plan's method sits; None for full thinking.
    listener
        Hears tokens while they are made.

    Raises
    ------
    data.errors.EngineError
        If a tree fails.
    """
    return (yield from _Live(task, plan, seat, listener or Listener()).run())


def _not_told(samples: int, tokens: int) -> None:
    """Tell nobody."""


class _Live:
    """A trajectory while it is made. ``output_ids`` is all that the model wrote of its thinking."""

    def __init__(self, task: LiveTask, plan: Plan, seat: Seat | None, listener: Listener) -> None:
        self._task, self._plan, self._seat, self._listener = task, plan, seat, listener
        self._subject, self._format = plan.subject, plan.subject.format
        self._output_ids: tuple[int, ...] = ()
        self._thinking_ids: tuple[int, ...] = ()
        self._lengths = [0]
        self._decisions: list[Decision] = []
        self._signal_tokens = 0
        self._numbers = AnswerNumbers(task.question.answer_kind)
        self._probe: Completion | None = None
        self._read: dict[str, Any] = {}

    def run(self) -> Asking[Outcome]:
        """Make the trajectory."""
        began = time.monotonic()
        cap = yield from self._begin()
        reason: Reason = "method"
        if cap is None or cap > 0:
            reason = yield from self._think(cap)
        answer_ids, finish = yield from self._answer(reason)
        return Outcome(
            reason=reason,
            position=len(self._lengths) - 1,
            tokens=self._lengths[-1],
            lengths=tuple(self._lengths),
            thinking_ids=self._thinking_ids,
            answer_ids=answer_ids,
            answer_finish=finish,
            signal_tokens=self._signal_tokens,
            decisions=tuple(self._decisions),
            seconds=time.monotonic() - began,
        )

    # -- deciding ------------------------------------------------------------------------------

    def _begin(self) -> Asking[int | None]:
        """Let the method see the question; return a cap on thinking, None for none."""
        policy, seat = self._plan.policy, self._seat
        if policy is None or seat is None:
            return None
        signals = yield from self._question_signals(policy)
        question = PlayedQuestion(
            benchmark=self._task.benchmark, lot=self._task.lot, signals=signals
        )
        place = policy.place_of(self._task.setting)
        if policy.description.strategy == "early_exit":
            seat.begin(question)
            return 0 if (yield from self._stops(policy, seat, place)) else None
        decided = seat.decide(question)[place]
        if policy.description.strategy == "routing":
            return None if decided else 0
        return None if decided is None else int(decided)

    def _stops(self, policy: Policy, seat: Seat, place: int) -> Asking[bool]:
        """Read the signals at the newest position, and ask the method."""
        needs = policy.needs_at("position")
        signals = yield from self._position_signals(policy, needs)
        tokens = self._lengths[-1]
        dealt = {name: signals[name] for name in policy.description.needs if name in needs}
        stopping, paying = seat.step(tokens, dealt, [place])
        if paying:
            self._signal_tokens += _cost(policy, "position", signals)
        score = getattr(seat, "last_score", None)
        self._decisions.append(
            Decision(
                position=len(self._lengths) - 1,
                tokens=tokens,
                score=float(score) if isinstance(score, int | float | np.number) else None,
                stops=bool(stopping),
            )
        )
        return bool(stopping)

    def _question_signals(self, policy: Policy) -> Asking[dict[str, Any]]:
        needs = policy.needs_at("question")
        if not needs:
            return {}
        found: dict[str, Any] = {"prompt_tokens": np.int32(len(self._task.prompt_ids))}
        if needs - {"prompt_tokens"}:
            # At k = 0 the prefix is the prompt: both levels come from one reading.
            shown = yield from self._read_position(policy, policy.needs)
            found["short_answer_logprob"] = shown["trial_logprob"]
            found["short_answer_tokens"] = shown["trial_tokens"]
            if "prompt_hidden" in needs:
                found["prompt_hidden"] = self._states(shown, policy.prompt_layers)
        self._signal_tokens += _cost(policy, "question", found)
        return {name: found[name] for name in policy.description.needs if name in needs}

    def _position_signals(self, policy: Policy, needs: frozenset[str]) -> Asking[dict[str, Any]]:
        signals: dict[str, Any] = {}
        if needs & ANSWERS:
            signals.update((yield from self._try_probe()))
        if needs - ANSWERS:
            shown = self._read or (yield from self._read_position(policy, needs))
            signals.update(shown)
            if "hidden" in needs:
                signals["hidden"] = self._states(shown, policy.layers)
        self._read = {}
        return signals

    def _states(self, shown: Mapping[str, Any], layers: tuple[int, ...]) -> Any:
        return np.stack([shown["states"][layer] for layer in layers])

    def _read_position(self, policy: Policy, needs: frozenset[str]) -> Asking[dict[str, Any]]:
        """Read the newest position as ``stp signals`` reads all of a campaign's."""
        settings = self._plan.signals
        if not needs & TRIALS:
            settings = settings.model_copy(update={"trial_tokens": 0})
        prompt_ids = self._task.prompt_ids
        item = ReadItem(
            question=0,
            trajectory=self._task.trajectory,
            prompt_tokens=len(prompt_ids),
            trunk_ids=prompt_ids + self._thinking_ids,
            tokens=(self._lengths[-1],),
            branches=(self._closed(0),),
            trials=[None],
            closed=bool(needs & CLOSED),
            session=self._task.session,
        )
        layers = self._plan.layers if needs & HIDDEN else ()
        found = yield from read_items([item], self._subject, settings, layers, _not_told)
        columns = position_columns([item], found, self._subject)
        shown: dict[str, Any] = {
            name: np.float32(columns[name][0])
            for name in ("end_logprob", "other_logprob", "entropy", "end_entropy", "answer_entropy")
        }
        shown["end_exact"] = np.True_
        trials = trial_signals(pa.chunked_array([pa.array(columns["trial_logprobs"])]))
        for name, values in trials.items():
            shown[name] = values.astype(np.int32 if name == "trial_tokens" else np.float32)[0]
        shown["states"] = {layer: states[0] for layer, states in found[0].hidden.items()}
        if not self._decisions and len(self._lengths) == 1:
            self._read = shown
        return shown

    def _try_probe(self) -> Asking[dict[str, Any]]:
        """Sample the campaign's first probe here; it is the answer if the method stops."""
        completion = yield from self._ask_probe()
        if completion is None:
            return {"answer": -1, "answer_hedged": False, "answer_tokens": 0}
        self._probe = completion
        text = self._text(completion.token_ids)
        answer = self._plan.answer_of(self._task.question, text)
        return {
            "answer": np.int32(self._numbers.number(answer)),
            "answer_hedged": np.bool_(DOUBT.search(text) is not None),
            "answer_tokens": np.int32(len(completion.token_ids)),
        }

    def _text(self, ids: tuple[int, ...]) -> str:
        return self._format.decode(ids, skip_special=True)

    # -- thinking ------------------------------------------------------------------------------

    def _think(self, cap: int | None) -> Asking[Reason]:
        """Think to the end, the limit, the cap, or where the method stops; set the positions."""
        policy, seat = self._plan.policy, self._seat
        watched = seat if policy and policy.description.strategy == "early_exit" else None
        while True:
            paused = yield from self._piece(cap, pauses=watched is not None)
            parts = self._format.split(self._output_ids)
            over = self._ended() or self._room() <= 0
            if parts.closed and not over:
                continue
            thinking = parts.thinking_ids
            full = len(thinking) >= self._task.thinking_limit
            self._told(thinking[: self._task.thinking_limit])
            if cap is not None and len(self._thinking_ids) > cap:
                self._cut_at(cap)
                return "method"
            if full or over:
                self._whole()
                return self._why_over(full, parts.closed)
            if not paused or watched is None or policy is None:
                continue
            if len(thinking) - self._lengths[-1] < self._step_tokens:
                # An engine that knows no ``pause_after`` stopped within a step.
                continue
            self._lengths.append(len(thinking))
            if (yield from self._stops(policy, watched, policy.place_of(self._task.setting))):
                return "method"

    @property
    def _step_tokens(self) -> int:
        return self._plan.config.probing.step_tokens

    def _room(self) -> int:
        """Return how many tokens the model may write, the end of its thinking included."""
        limit = self._task.thinking_limit
        if not self._format.family.end_needs_answer_open:
            return limit - len(self._output_ids)
        answer = self._plan.config.generation.answer_tokens
        whole = limit + len(self._format.close_ids) + answer
        room = self._subject.context_limit - len(self._task.prompt_ids)
        return min(whole, room) - len(self._output_ids)

    def _why_over(self, full: bool, closed: bool) -> Reason:
        if full or not (closed or self._ended()):
            return "limit"
        return "end" if closed else "turn_end"

    def _ended(self) -> bool:
        """Return whether the model has ended its thinking, and the answer where it goes with it."""
        if self._format.family.end_needs_answer_open:
            return bool(self._output_ids) and self._output_ids[-1] in self._format.answer_stop_ids
        last = self._output_ids[-1:]
        if last and last[0] in self._format.thinking_stop_ids:
            return True
        return self._format.written and self._format.split(self._output_ids).closed

    def _piece(self, cap: int | None, *, pauses: bool) -> Asking[bool]:
        """Sample until something must be decided; return whether at a boundary."""
        format_, limit = self._format, self._room()
        if cap is not None:
            # One more than the cap may be the end of the thinking.
            limit = min(limit, cap + 1 - len(self._output_ids))
        if self._plan.piece_tokens is not None:
            limit = min(limit, self._plan.piece_tokens)
        one_phase = format_.family.end_needs_answer_open
        written = len(self._thinking_ids) - self._lengths[-1]
        completion = yield from self._sample(
            self._task.prompt_ids + self._output_ids,
            drawn=len(self._output_ids),
            seed=self._seed("think"),
            max_tokens=max(1, limit),
            stop_ids=format_.answer_stop_ids if one_phase else format_.thinking_stop_ids,
            stop_texts=() if one_phase else format_.thinking_stop_texts,
            pause_ids=self._subject.boundary_ids if pauses else frozenset(),
            pause_after=max(1, self._step_tokens - written),
        )
        self._output_ids += completion.token_ids
        return pauses and completion.token_ids[-1] in self._subject.boundary_ids

    def _told(self, thinking_ids: tuple[int, ...]) -> None:
        new = thinking_ids[len(self._thinking_ids) :]
        self._thinking_ids = thinking_ids
        if new:
            self._listener.thought(new)

    def _whole(self) -> None:
        """Set the positions of thinking that is kept to its end."""
        self._lengths = self._positions()

    def _cut_at(self, cap: int) -> None:
        """Go back to the last position within a cap."""
        self._lengths = [length for length in self._positions() if length <= cap]

    def _positions(self) -> list[int]:
        ids = np.asarray(self._thinking_ids, np.int32)
        return [int(n) for n in segment_causal(ids, self._subject.boundary_ids, self._step_tokens)]

    # -- answering -----------------------------------------------------------------------------

    def _answer(self, reason: Reason) -> Asking[tuple[tuple[int, ...], str]]:
        """Let the model answer; return the answer's ids and how it ended."""
        if reason == "turn_end":
            return (), "none"
        if reason == "end":
            return (yield from self._own_answer())
        completion = self._probe
        if completion is not None and reason == "method" and self._decisions:
            self._listener.answered(completion.token_ids)
        else:
            completion = yield from self._ask_probe(tell=True)
        return ((), "none") if completion is None else (completion.token_ids, completion.finish)

    def _own_answer(self) -> Asking[tuple[tuple[int, ...], str]]:
        """Continue to the answer after thinking that the model closed, as a campaign does."""
        limit = self._task.answer_tokens or self._plan.config.generation.answer_tokens
        if self._format.family.end_needs_answer_open:
            ids = self._format.split(self._output_ids).answer_ids
            self._listener.answered(ids[:limit])
            return ids[:limit], "stop" if len(ids) <= limit else "length"
        ids = self._task.prompt_ids + self._output_ids
        limit = answer_limit(
            len(ids), answer_tokens=limit, context_limit=self._subject.context_limit
        )
        if not limit:
            return (), "none"
        told = 0

        def tell(made: tuple[int, ...]) -> None:
            nonlocal told
            answer_ids = self._format.split(self._output_ids + made).answer_ids
            self._listener.answered(answer_ids[told:])
            told = len(answer_ids)

        made = yield from self._answer_from(ids, self._seed("answer"), limit, tell=tell)
        return self._format.split(self._output_ids + made.token_ids).answer_ids, made.finish

    def _closed(self, seed: int) -> Branch:
        """Return the branch that closes the thinking at the newest position."""
        return prefix_branch(
            self._task.prompt_ids,
            self._thinking_ids,
            self._lengths,
            len(self._lengths) - 1,
            format=self._format,
            content_ids=self._subject.content_ids,
            seeds=(seed,),
            opening_ids=(),
        )

    def _ask_probe(self, *, tell: bool = False) -> Asking[Completion | None]:
        """Sample the first probe at the newest position; None if the context has no room."""
        opening = self._subject.opening_ids
        branch = self._closed(0)
        ids = (self._task.prompt_ids + self._thinking_ids)[: branch.cut]
        ids += branch.suffix_ids + opening
        limit = answer_limit(
            len(ids),
            answer_tokens=self._task.answer_tokens or self._plan.config.probing.answer_tokens,
            context_limit=self._subject.context_limit,
        )
        if not limit:
            return None
        seed = self._seed("probe", position=len(self._lengths) - 1)
        told = 0

        def told_of(made: tuple[int, ...]) -> None:
            nonlocal told
            self._listener.answered((opening + made)[told:])
            told = len(opening) + len(made)

        listening = told_of if tell else None
        made = yield from self._answer_from(ids, seed, limit, kept=branch.cut, tell=listening)
        return Completion(token_ids=opening + made.token_ids, finish=made.finish)

    def _answer_from(
        self,
        ids: tuple[int, ...],
        seed: int,
        limit: int,
        *,
        kept: int | None = None,
        tell: Callable[[tuple[int, ...]], None] | None,
    ) -> Asking[Completion]:
        """Sample an answer after ids, of which the first ``kept`` lie in the session.

        ``tell`` is called with all that was sampled so far.
        """
        made: tuple[int, ...] = ()
        while True:
            most = limit - len(made)
            if self._plan.piece_tokens is not None:
                most = min(most, self._plan.piece_tokens)
            piece = yield from self._sample(
                ids + made,
                drawn=len(made),
                seed=seed,
                max_tokens=most,
                stop_ids=self._format.answer_stop_ids,
                grows=False,
                kept=kept,
            )
            made += piece.token_ids
            if tell is not None:
                tell(made)
            if piece.finish == "stop" or len(made) >= limit:
                return Completion(token_ids=made, finish=piece.finish)

    # -- asking --------------------------------------------------------------------------------

    def _sample(
        self,
        ids: tuple[int, ...],
        *,
        drawn: int,
        seed: int,
        grows: bool = True,
        kept: int | None = None,
        **tree: Any,
    ) -> Asking[Completion]:
        """Sample after ids; what lies in the session is not computed again."""
        # The newest token has not been through the model: it is a suffix, whoever drew it.
        cut = len(ids) if not (drawn or self._output_ids) and kept is None else len(ids) - 1
        cut = cut if kept is None else kept
        branch = Branch(cut=cut, suffix_ids=ids[cut:], seeds=(seed,), drawn=drawn)
        asked = PromptTree(
            trunk_ids=ids[:cut],
            branches=(branch,),
            sampling=self._subject.sampling,
            session=self._task.session,
            grows=grows,
            **tree,
        )
        made = cast("list[TreeCompletions]", (yield Ask([asked], _not_told)))
        return made[0][0][0]

    def _seed(self, phase: str, position: int | None = None) -> int:
        config, task = self._plan.config, self._task
        return sample_seed(
            config.seed if task.seed is None else task.seed,
            model=self._subject.name,
            benchmark=task.benchmark,
            question=task.question.id,
            trajectory=task.trajectory,
            phase=phase,
            position=position,
        )


def _cost(
    policy: Policy, level: Literal["position", "question"], signals: Mapping[str, Any]
) -> int:
    """Return the tokens that a level's signals took, as OTBench counts them."""
    sources = cost_sources(policy.description.needs, level)
    return sum(1 if source == PASS else int(signals[source]) for source in sources)
