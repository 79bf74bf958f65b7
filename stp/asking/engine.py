"""Local models: requests through our own engine, thinking and answer separated by token ids.

An output grows in passes: until the thinking's own limit, after its end was put in by force, and
after each result of a tool. Between passes ids are appended, never decoded and encoded again.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from data.errors import ConfigError, EngineError, MisuseError, one_line
from stp.asking.base import (
    Description,
    Finish,
    Request,
    RequestGroup,
    Responder,
    Response,
    Settings,
    failed,
    parted_noted,
)
from stp.asking.chat import Chat, Parts
from stp.asking.tools import OBSERVATION, get_tools, use, written_call, written_request
from stp.engines.base import (
    Branch,
    Completion,
    Engine,
    PromptTree,
    SamplingParameters,
    TreeCompletions,
)
from stp.seeds import sample_seed

_LOG = logging.getLogger(__name__)

DEFAULT_BATCH = 64
MAX_FAILURES_IN_A_ROW = 5

ChatChooser = Callable[[Settings], Chat]
"""Returns how the model is prompted under some settings."""


@dataclass(slots=True)
class _Sample:
    """One request on its way.

    ``work`` is what it has in common with its group, ``output_ids`` what stands after the prompt,
    ``spent`` how many of these the model wrote, and ``given`` how many were put in after its
    thinking. ``answer_from`` is where in the output the text after the last result of a tool
    begins.
    """

    work: "_Work"
    request: Request
    prompt_ids: tuple[int, ...]
    limit: int
    error: str | None = None
    output_ids: tuple[int, ...] = ()
    spent: int = 0
    given: int = 0
    passes: int = 0
    asked: int = 0
    tool_calls: int = 0
    answer_from: int = 0
    watches: bool = True
    finish: Finish = "stop"
    forced: bool = False
    failed_once: bool = False
    began: float = field(default_factory=time.monotonic)


class EngineResponder(Responder):
    """Answers requests with a model that an engine runs.

    Parameters
    ----------
    engine
        Runs the model; closed with the responder.
    choose
        How the model is prompted.
    description
        What is known of the model beside what the engine says.
    batch
        Requests under way at once; they are lost if the process dies.
    """

    def __init__(
        self,
        engine: Engine,
        choose: ChatChooser,
        *,
        description: Description | None = None,
        batch: int = DEFAULT_BATCH,
    ) -> None:
        if batch < 1:
            raise MisuseError(f"batch is {batch}; it must be at least 1")
        self._engine = engine
        self._choose = choose
        self._description = description or {}
        self._batch = batch
        self._failures = 0

    def respond(self, *groups: RequestGroup) -> None:
        """Answer requests as they end; see :meth:`Responder.respond`.

        Others are begun in their places, so that the engine never runs dry; where it repeats
        exactly, a batch is begun when the one before has ended, and holds requests of one group.
        """
        with parted_noted(groups) as noted:
            works = [
                _Work(self._choose(group.settings), group, self._engine.context_limit)
                for group in noted
            ]
            streams = [[work] for work in works] if self._engine.repeats_exactly else [works]
            try:
                for stream in streams:
                    self._respond(stream)
            finally:
                self._engine.drop()

    def _respond(self, works: Sequence["_Work"]) -> None:
        left = deque((work, request) for work in works for request in work.group.requests)
        ready: deque[_Sample] = deque()
        in_flight: dict[int, _Sample] = {}

        def go_on(sample: _Sample) -> None:
            if sample.work.goes_on(sample):
                ready.append(sample)
            else:
                sample.work.give(sample)

        while left or ready or in_flight:
            under_way = len(ready) + len(in_flight)
            if not under_way or not self._engine.repeats_exactly:
                for _ in range(min(len(left), self._batch - under_way)):
                    work, request = left.popleft()
                    sample = work.start(request)
                    if sample.error is None:
                        ready.append(sample)
                    else:
                        work.give(sample)
            for sample in self._step(ready, in_flight):
                go_on(sample)

    def _step(self, ready: deque[_Sample], in_flight: dict[int, _Sample]) -> list[_Sample]:
        """Hand over what is ready and let the engine work a little; return whose pass is over."""
        try:
            while ready and self._engine.wants_more:
                ticket = self._engine.submit(ready[0].work.tree(ready[0]))
                in_flight[ticket] = ready.popleft()
            progress = self._engine.step()
        # Engines raise their library's errors too, which are RuntimeErrors and OSErrors.
        except (EngineError, RuntimeError, OSError) as error:
            self._engine.drop()
            lost = list(in_flight.values())
            in_flight.clear()
            _LOG.warning("the engine failed (%s); asking %d one by one", one_line(error), len(lost))
            for sample in lost:
                self._ask_alone(sample)
            return lost
        over = []
        for entry in progress.trees:
            sample = in_flight.pop(entry.ticket)
            if entry.error is None:
                ((completion,),) = cast("TreeCompletions", entry.made)
                self._failures = 0
                sample.work.take(sample, completion)
                over.append(sample)
            elif not sample.failed_once:
                sample.failed_once = True
                ready.append(sample)
            else:
                self._note_failure(sample, entry.error)
                over.append(sample)
        return over

    def _ask_alone(self, sample: _Sample) -> None:
        """Sample one pass of a request that was under way when the engine failed."""
        try:
            (((completion,),),) = self._engine.generate([sample.work.tree(sample)])
        except (EngineError, RuntimeError, OSError) as error:
            self._note_failure(sample, error)
            return
        self._failures = 0
        sample.work.take(sample, completion)

    def _note_failure(self, sample: _Sample, error: BaseException) -> None:
        self._failures += 1
        sample.error = str(error)
        if self._failures >= MAX_FAILURES_IN_A_ROW:
            raise EngineError(
                f"the engine failed on {self._failures} requests in a row: {one_line(error)}; what "
                "was answered is kept"
            ) from error

    def describe(self) -> Description:
        """Return what is known of the model and its engine."""
        return {**self._description, **self._engine.describe()}

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class _Work:
    """What is the same for all requests of a group, and how one of them continues."""

    def __init__(self, chat: Chat, group: RequestGroup, context_limit: int) -> None:
        self.group = group
        self._chat = chat
        self._settings = settings = group.settings
        self._context_limit = context_limit
        self._tools = get_tools(settings.tools)
        self._sampling = _sampling(chat.sampling, settings)
        self._cap = settings.thinking_tokens if chat.thinks else None

    def start(self, request: Request) -> _Sample:
        """Return a request with its prompt; with an error if that is too long."""
        system = request.system
        if self._tools:
            asked = written_request(self._tools)
            system = f"{system}\n\n{asked}" if system else asked
        try:
            prompt_ids = self._chat.prompt_ids(self._settings.dress(request.prompt), system)
        except ConfigError as error:
            return _Sample(self, request, (), 0, error=str(error))
        room = self._context_limit - len(prompt_ids)
        limit = min(room, self._settings.max_tokens or room)
        problem = None
        if limit < 1:
            problem = (
                f"the prompt has {len(prompt_ids)} tokens, and the model's context holds "
                f"{self._context_limit}"
            )
        return _Sample(self, request, prompt_ids, limit, problem)

    def tree(self, sample: _Sample) -> PromptTree:
        """Return the work of a request's next pass."""
        trunk_ids = sample.prompt_ids + sample.output_ids
        sample.asked = self._left(sample)
        if self._cap is not None and not sample.forced:
            # At least one token, which is dropped again: a cap of 0 is no thinking at all.
            sample.asked = min(sample.asked, max(1, self._cap - sample.spent))
        return PromptTree(
            trunk_ids=trunk_ids,
            branches=(Branch(cut=len(trunk_ids), suffix_ids=(), seeds=(_seed(sample),)),),
            max_tokens=sample.asked,
            stop_ids=self._chat.stop_ids,
            stop_texts=(OBSERVATION,) if self._tools and sample.watches else (),
            sampling=self._sampling,
        )

    def take(self, sample: _Sample, completion: Completion) -> None:
        """Add a pass to a request."""
        sample.passes += 1
        sample.output_ids += completion.token_ids
        sample.spent += len(completion.token_ids)
        sample.finish = completion.finish

    def goes_on(self, sample: _Sample) -> bool:
        """Return whether a request needs another pass, and prepare that pass."""
        if sample.error is not None:
            return False
        ended = bool(sample.output_ids) and sample.output_ids[-1] in self._chat.stop_ids
        if self._cap is not None and not sample.forced and not ended:
            parts = self._chat.split(sample.output_ids)
            sample.forced = True
            if not parts.answered:
                self._close_thinking(sample, parts)
            return self._left(sample) > 0
        if self._tools and sample.finish == "stop" and self._left(sample) > 0:
            return self._use_tool(sample, ended)
        return False

    def give(self, sample: _Sample) -> None:
        """Give the response to a request."""
        self.group.on_response(self._response(sample))

    def _response(self, sample: _Sample) -> Response:
        seconds = time.monotonic() - sample.began
        if sample.error is not None:
            return failed(sample.request, sample.error, seconds)
        parts = self._chat.split(sample.output_ids)
        ended = bool(sample.output_ids) and sample.output_ids[-1] in self._chat.stop_ids
        # Counted from the end, where output and answer agree.
        after = len(sample.output_ids) - ended - sample.answer_from
        last = parts.answer_ids[-after:] if 0 < after < len(parts.answer_ids) else parts.answer_ids
        earlier = parts.answer_ids[: len(parts.answer_ids) - len(last)]
        return Response(
            id=sample.request.id,
            text=self._chat.answer_text(last).strip() if parts.answered else "",
            thinking=(
                self._chat.text(parts.thinking_ids).strip()
                if self._chat.thinks or parts.written
                else None
            ),
            answer_tokens=max(0, len(parts.answer_ids) - sample.given),
            thinking_tokens=len(parts.thinking_ids),
            output_tokens=sample.spent,
            finish=sample.finish,
            seconds=seconds,
            tool_calls=sample.tool_calls,
            tool_text=self._chat.text(earlier).strip() if sample.tool_calls else None,
            parted=parts.written,
            ran_on=self._chat.runs_on(last),
        )

    def _left(self, sample: _Sample) -> int:
        room = self._context_limit - len(sample.prompt_ids) - len(sample.output_ids)
        return min(room, sample.limit - sample.spent)

    def _close_thinking(self, sample: _Sample, parts: Parts) -> None:
        """Cut the thinking at its cap, and end it."""
        assert self._cap is not None
        excess = max(0, len(parts.thinking_ids) - self._cap)
        if excess:
            sample.output_ids = sample.output_ids[:-excess]
            sample.spent -= excess
        sample.output_ids += self._chat.close_ids

    def _use_tool(self, sample: _Sample, ended: bool) -> bool:
        parts = self._chat.split(sample.output_ids)
        after = len(sample.output_ids) - ended - sample.answer_from
        text = self._chat.text(parts.answer_ids[-after:]) if parts.answered and after else ""
        call = written_call(text)
        if call is None or sample.tool_calls >= self._settings.tool_rounds:
            # The word stood in the thinking, or in passing. From here on the sample is not
            # stopped at it any more.
            sample.watches = False
            return not ended
        sample.tool_calls += 1
        if ended:
            sample.output_ids = sample.output_ids[:-1]
        word = "" if OBSERVATION in text else f"\n{OBSERVATION}"
        ids = self._chat.ids(f"{word} {use(self._tools, *call)}\n")
        sample.output_ids += ids
        sample.given += len(ids)
        sample.answer_from = len(sample.output_ids)
        return self._left(sample) > 0


def _seed(sample: _Sample) -> int:
    if sample.passes == 0:
        return sample.request.seed
    return sample_seed(
        sample.request.seed,
        model="",
        benchmark="",
        question=sample.request.id,
        trajectory=0,
        phase="pass",
        sample=sample.passes,
    )


def _sampling(own: SamplingParameters, settings: Settings) -> SamplingParameters:
    """Return the model's sampling with what the settings say instead."""
    return SamplingParameters(
        temperature=own.temperature if settings.temperature is None else settings.temperature,
        # An engine's nucleus holds at least the likeliest token, so that 0 means greedy.
        top_p=own.top_p if settings.top_p is None else max(settings.top_p, 1e-6),
        top_k=own.top_k if settings.top_k is None else settings.top_k,
        presence_penalty=(
            own.presence_penalty if settings.presence_penalty is None else settings.presence_penalty
        ),
    )
