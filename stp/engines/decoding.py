"""Continuous batching over forked rows: from prompt trees to completions.

A tree's trunk is prefilled once. Branches are admitted in order while there is room: their
suffixes go through the model as one batch, each tail is copied to the branch's samples, and from
then on every row of every tree decodes in one batch. Rows that end leave; waiting branches come
in, and trees that are submitted meanwhile wait after them. When the tails outgrow their
memory, the last rows go back to the queue with what they have generated: their random streams
depend on seed and step only, so they continue as they would have.

Names:

* ``cut``: how many ids of its trunk a branch keeps. Its suffix and what is generated come after
  them: this is a row's *tail*, whose keys and values the row holds by itself.
* *place*: a row's index in the batch: in ``_rows``, ``_cuts``, ``_last_tokens`` and the tails.
  ``_rows[place]`` is None once a row has ended; the tensors keep its place until ``_recompose``.
* *grove*: a tree that has been begun, for as long as one of its samples is unfinished.

Invariants between two steps:

* The newest token of every row has been drawn and has not been through the model: a tail holds one
  id less than suffix and generated ids together.
* A row's next token depends on its own ids, its seed, and how many it has drawn. So rows may come,
  leave and be sent back at any time, and the batch changes no draw (but for rounding).
* Below a trunk's ``length`` nothing is ever written again. So groves and sessions share trunks.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from data.errors import EngineError
from stp.engines.admission import Gathering, Lengths
from stp.engines.base import (
    Completion,
    FinishReason,
    PromptTree,
    SamplingParameters,
)
from stp.engines.fork_attention import (
    RowsStep,
    Tails,
    Trunk,
    TrunkBlock,
    TrunkStep,
    plan_blocks,
)
from stp.engines.sampling import draw, uniforms


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much is done at once.

    Attributes
    ----------
    max_rows
        Samples that decode together.
    memory_bytes
        Keys and values of trunks and tails that may be held, as far as one row needs no more.
    trunk_chunk_tokens
        Trunk tokens per forward pass.
    suffix_chunk_tokens
        Suffix tokens, padding included, per forward pass.
    most_waste
        See :func:`stp.engines.fork_attention.plan_blocks`.
    most_scores
        See :func:`stp.engines.fork_attention.plan_blocks`.
    most_logits
        Logits from which tokens are drawn at once.
    """

    max_rows: int
    memory_bytes: int
    trunk_chunk_tokens: int
    suffix_chunk_tokens: int
    most_waste: int
    most_scores: int
    most_logits: int


class ForkableModel(Protocol):
    """What decoding needs of a model."""

    device: torch.device
    query_heads: int
    bytes_per_token: int

    def forward(
        self,
        step: TrunkStep | RowsStep,
        input_ids: Tensor,
        position_ids: Tensor,
        logits_at: Tensor,
    ) -> Tensor:
        """Run one pass; return logits [R, len(logits_at), V] at these places of the S tokens."""


@dataclass(slots=True, eq=False)
class _Row:
    """One sample that is not finished; ``tree`` is its tree's ticket."""

    tree: int
    branch: int
    sample: int
    seed: int
    limit: int
    before: tuple[int, ...] = ()
    """Its own ids that its prompt ends with."""
    generated: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Waiting:
    """Rows to admit that share a prompt: ``cut`` trunk ids, then ``suffix_ids``.

    ``tree`` is a ticket.
    """

    tree: int
    cut: int
    suffix_ids: tuple[int, ...]
    rows: list[_Row]


@dataclass(slots=True, eq=False)
class _Grove:
    """A tree that has been begun: its trunk, and the logits where a branch adds nothing to it."""

    trunk: Trunk
    logits_after: dict[int, Tensor]


@dataclass(slots=True, eq=False)
class _Kept:
    """What a session has: ids, and a trunk that holds their keys and values."""

    ids: tuple[int, ...]
    trunk: Trunk


class DecodingListener(Protocol):
    """Who is told what decoding gives; trees are named by their tickets."""

    def prefilled(self, ticket: int, tokens: int) -> None:
        """Take note of prompt tokens that went through the model."""

    def advanced(self) -> None:
        """Take note that every row got a token."""

    def ended(self, ticket: int, branch: int, sample: int, made: Completion) -> None:
        """Take note of a sample."""


class Decoder:
    """Runs the trees that it is given.

    What it does depends on the trees in flight alone: with nothing in flight it knows nothing of
    those before.

    Parameters
    ----------
    model
        The model.
    limits
        How much is done at once.
    context_limit
        Most ids of a sample.
    text_ends
        Whether the newest of generated ids completes one of the tree's stop texts, or its box.
    listener
        Told what is done.
    """

    def __init__(
        self,
        model: ForkableModel,
        *,
        limits: BatchLimits,
        context_limit: int,
        text_ends: Callable[[Sequence[int], PromptTree], bool],
        listener: DecodingListener,
    ) -> None:
        self._model = model
        self._limits = limits
        self._context_limit = context_limit
        self._text_ends = text_ends
        self._listener = listener
        self._sessions: dict[int, _Kept] = {}
        self._clear()

    def _clear(self) -> None:
        """Forget everything."""
        self._gathering = Gathering()
        self.waiting = 0
        """Samples that were submitted and do not run."""
        self._trees: dict[int, PromptTree] = {}
        self._queue: deque[_Waiting] = deque()
        self._groves: dict[int, _Grove] = {}
        self._unfinished: dict[int, int] = {}
        self._lengths: dict[int, Lengths] = {}
        self._rows: list[_Row | None] = []
        self._cuts = np.zeros(0, dtype=np.int64)
        self._tails = Tails(np.zeros(0, dtype=np.int64), 0)
        self._row_blocks: list[TrunkBlock] = []
        self._row_cuts = self._last_tokens = self._index(self._cuts)

    def submit(self, ticket: int, tree: PromptTree) -> None:
        """Put a checked tree last in the queue."""
        width = self._limits.max_rows
        for number, branch in enumerate(tree.branches):
            room = self._context_limit - branch.cut - len(branch.suffix_ids)
            before: tuple[int, ...] = ()
            if branch.drawn:
                prompt = (*tree.trunk_ids[: branch.cut], *branch.suffix_ids)
                before = prompt[len(prompt) - branch.drawn :]
            rows = [
                _Row(ticket, number, sample, seed, min(tree.max_tokens, room), before)
                for sample, seed in enumerate(branch.seeds)
            ]
            for start in range(0, len(rows), width):
                waiting = _Waiting(
                    ticket, branch.cut, branch.suffix_ids, rows[start : start + width]
                )
                self._queue.append(waiting)
        samples = sum(len(branch.seeds) for branch in tree.branches)
        if samples:
            self._trees[ticket] = tree
            self._unfinished[ticket] = samples
            self._lengths.setdefault(tree.max_tokens, Lengths(tree.max_tokens))
            self.waiting += samples

    @property
    def busy(self) -> bool:
        """Whether samples wait or run."""
        return bool(self._queue or self._rows)

    @property
    def active(self) -> int:
        """Samples that run."""
        return sum(row is not None for row in self._rows)

    def step(self) -> None:
        """Let in what there is room for, and give every row one more token."""
        self._admit()
        if self._rows:
            self._advance()
            self._leave_if_worthwhile()
        if not self.busy:
            self._clear()

    def drop(self, tickets: frozenset[int]) -> None:
        """Forget trees."""
        mine = tickets & self._trees.keys()
        if not mine:
            return
        if mine == self._trees.keys():
            self._clear()
            return
        self._queue = deque(entry for entry in self._queue if entry.tree not in mine)
        self.waiting = sum(len(entry.rows) for entry in self._queue)
        if not self.waiting:
            self._gathering = Gathering()
        self._rows = [None if row is None or row.tree in mine else row for row in self._rows]
        for ticket in mine:
            self._groves.pop(ticket, None)
            del self._trees[ticket], self._unfinished[ticket]
        self._keep(self._running())

    # Admission

    def _admit(self) -> None:
        """Let waiting branches in while there is room for enough of them to be worth a pass."""
        active = self.active
        # Every admission copies all tails, and its pass holds up those that decode: a quarter of
        # the rows at once is worth that, and a single one is not.
        if active and 4 * active > 3 * self._limits.max_rows:
            return
        if self.waiting and not self._gathering.enough(self.waiting, active):
            return
        while self._queue:
            batch = self._next_batch()
            if not batch:
                return
            self._enter(batch)

    def _next_batch(self) -> list[_Waiting]:
        """Take from the queue what fits the rows, the memory and one pass."""
        batch: list[_Waiting] = []
        active = [row for row in self._rows if row is not None]
        rows = len(active)
        tail = max(map(self._expected_tail, active), default=0)
        memory = self._trunk_tokens()
        begun = set(self._groves)
        widest = 0
        while self._queue:
            first = self._queue[0]
            rows += len(first.rows)
            tail = max(tail, *map(self._expected_tail, first.rows))
            widest = max(widest, len(first.suffix_ids))
            if first.tree not in begun:
                begun.add(first.tree)
                memory += self._trees[first.tree].longest_cut
            # Room to grow is part of it: a row that is sent back is prefilled twice.
            needed = (memory + rows * tail) * self._model.bytes_per_token
            crowded = rows > self._limits.max_rows or needed > self._limits.memory_bytes
            # A branch that is too large for the memory runs alone rather than never.
            if crowded and (batch or rows > len(first.rows)):
                break
            if batch and widest * (len(batch) + 1) > self._limits.suffix_chunk_tokens:
                break
            batch.append(self._queue.popleft())
        self.waiting -= sum(len(waiting.rows) for waiting in batch)
        return batch

    def _expected_tail(self, row: _Row) -> int:
        """Return how long a row's tail is expected to become, by the samples that have ended."""
        tree = self._trees[row.tree]
        length = self._lengths[tree.max_tokens].expected(len(row.generated))
        return len(tree.branches[row.branch].suffix_ids) + min(row.limit, round(length)) + 1

    @torch.inference_mode()
    def _enter(self, batch: list[_Waiting]) -> None:
        """Prefill a batch of branches, draw their rows' next tokens, and let the rows in."""
        for waiting in batch:
            if waiting.tree not in self._groves:
                self._groves[waiting.tree] = self._begin(waiting.tree)
        tails, logits = self._prefill_suffixes(batch)
        rows = [row for waiting in batch for row in waiting.rows]
        source = np.repeat(np.arange(len(batch)), [len(waiting.rows) for waiting in batch])
        cuts = np.array([waiting.cut for waiting in batch], dtype=np.int64)[source]
        self._draw(rows, logits, source)
        going = np.array(
            [
                self._going(row, tails, at, int(cut))
                for row, at, cut in zip(rows, source.tolist(), cuts, strict=True)
            ],
            dtype=bool,
        )
        self._recompose(
            self._running(),
            [row for row, goes in zip(rows, going, strict=True) if goes],
            tails,
            source[going],
            cuts[going],
        )

    def _begin(self, ticket: int) -> _Grove:
        """Prefill a tree's trunk as far as some branch keeps it."""
        tree = self._trees[ticket]
        length = tree.longest_cut
        # A branch without a suffix draws its first token from the trunk's own logits.
        ends = sorted({b.cut for b in tree.branches if b.seeds and not b.suffix_ids})
        trunk = self.session_trunk(tree.session, tree.trunk_ids, length, again_from=ends)
        if tree.session is not None:
            # Whoever asks next about the same ids finds them.
            self._sessions.setdefault(tree.session, _Kept(tree.trunk_ids[:length], trunk))
        grove = _Grove(trunk, {})
        ids = torch.tensor(tree.trunk_ids[:length], dtype=torch.int64, device=self._model.device)
        width = self._limits.trunk_chunk_tokens
        for start in range(min(trunk.length, length), length, width):
            stop = min(start + width, length)
            here = [end for end in ends if start < end <= stop]
            places = torch.tensor(
                [end - 1 - start for end in here], dtype=torch.int64, device=ids.device
            )
            logits = self._model.forward(
                TrunkStep(trunk, self._limits.most_scores),
                ids[None, start:stop],
                torch.arange(start, stop, device=ids.device)[None],
                places,
            )
            trunk.length = stop
            self._listener.prefilled(ticket, stop - start)
            grove.logits_after.update(zip(here, logits[0].unbind(0), strict=True))
        return grove

    def _prefill_suffixes(self, batch: list[_Waiting]) -> tuple[Tails, Tensor]:
        """Return the tails of a batch's suffixes and the logits [rows, V] after them."""
        logits: list[Tensor | None] = [
            None if waiting.suffix_ids else self._groves[waiting.tree].logits_after[waiting.cut]
            for waiting in batch
        ]
        longer = [i for i, waiting in enumerate(batch) if waiting.suffix_ids]
        lengths = np.array([len(waiting.suffix_ids) for waiting in batch], dtype=np.int64)
        if not longer:
            return Tails(lengths, 0), torch.stack([x for x in logits if x is not None])
        width = int(lengths.max())
        # Rows without a suffix ride along as padding, so that tails and batch have one order.
        padded = np.zeros((len(batch), width), dtype=np.int64)
        for row, waiting in zip(padded, batch, strict=True):
            row[width - len(waiting.suffix_ids) :] = waiting.suffix_ids
        tails, last = self._advance_padded(batch, padded, lengths)
        for i in longer:
            self._listener.prefilled(batch[i].tree, int(lengths[i]))
            logits[i] = last[i]
        return tails, torch.stack([x for x in logits if x is not None])

    def _advance_padded(
        self,
        batch: list[_Waiting],
        padded: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
    ) -> tuple[Tails, Tensor]:
        """Run left-padded suffixes [rows, S] in chunks of columns; return tails, last logits."""
        cuts = np.array([waiting.cut for waiting in batch], dtype=np.int64)
        trunks = [self._groves[waiting.tree].trunk for waiting in batch]
        # Padded on the left, so that all suffixes end in the last column, and its logits are those
        # of every row. The padding has negative indices into the tails, and is written nowhere.
        width = padded.shape[1]
        tails = Tails(lengths, width)
        ids, cuts_there = self._index(padded), self._index(cuts)
        tail_index = torch.arange(width, device=ids.device) - width + self._index(lengths)[:, None]
        chunk = max(1, self._limits.suffix_chunk_tokens // len(batch))
        logits = torch.empty(0)
        for start in range(0, width, chunk):
            stop = min(start + chunk, width)
            here = tail_index[:, start:stop]
            step = RowsStep(
                tails=tails,
                blocks=self._blocks(trunks, cuts, stop - start),
                cuts=cuts_there,
                tail_index=here,
                longest=max(1, stop - int((width - lengths).min())),
                even=False,
            )
            places = torch.tensor([stop - start - 1], device=ids.device)
            positions = cuts_there[:, None] + here.clamp_min(0)
            logits = self._model.forward(step, ids[:, start:stop], positions, places)[:, 0]
        return tails, logits

    # Decoding

    @torch.inference_mode()
    def _advance(self) -> None:
        """Give every row one more token."""
        self._make_room()
        rows = [row for row in self._rows if row is not None]
        lengths = self._tails.lengths
        longest = int(lengths.max()) + 1
        step = RowsStep(
            tails=self._tails,
            blocks=self._row_blocks,
            cuts=self._row_cuts,
            tail_index=self._index(lengths)[:, None],
            longest=longest,
            even=bool((lengths == longest - 1).all()),
        )
        places = torch.zeros(1, dtype=torch.int64, device=self._model.device)
        logits = self._model.forward(
            step, self._last_tokens[:, None], self._row_cuts[:, None] + step.tail_index, places
        )[:, 0]
        here = self._running()
        lengths[here] += 1
        tokens = self._draw(rows, logits, here)
        self._last_tokens[self._index(here)] = tokens
        for i, row in zip(here.tolist(), rows, strict=True):
            if not self._going(row, self._tails, i, int(self._cuts[i])):
                self._rows[i] = None

    def _draw(self, rows: Sequence[_Row], logits: Tensor, source: npt.NDArray[np.int64]) -> Tensor:
        """Draw and append the next token of each row, whose logits are ``logits[source[row]]``."""
        seeds = np.array([row.seed for row in rows], dtype=np.uint64)
        # Ids that an earlier request drew count as drawn, so that a sample which is made in pieces
        # gets the random numbers that it would have got in one.
        steps = np.array([len(row.before) + len(row.generated) for row in rows], dtype=np.uint64)
        uniform = torch.from_numpy(uniforms(seeds, steps)).to(logits.device)
        groups: dict[SamplingParameters, list[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(self._trees[row.tree].sampling, []).append(i)
        tokens = torch.empty(len(rows), dtype=torch.int64, device=logits.device)
        # Few rows at a time: on a CPU, passes over all logits would go through main memory.
        width = max(1, self._limits.most_logits // logits.shape[-1])
        for sampling, members in groups.items():
            for start in range(0, len(members), width):
                some = members[start : start + width]
                here = self._index(np.array(some, dtype=np.int64))
                theirs = _widened(logits[self._index(source[some])])
                if sampling.presence_penalty:
                    theirs = _penalised(theirs, [rows[i] for i in some], sampling.presence_penalty)
                tokens[here] = draw(theirs, uniform[here], sampling)
        if not bool(torch.isfinite(logits.amax(-1)).all()):
            raise EngineError(
                "the model gave logits that are not finite; its weights may be damaged, or the "
                "dtype too narrow (try dtype = float32)"
            )
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.generated.append(token)
        self._listener.advanced()
        return tokens

    def _going(self, row: _Row, tails: Tails, place: int, cut: int) -> bool:
        """Return whether a row continues after its newest token; if not, tell of its completion.

        Its keys and values are ``cut`` tokens of its trunk, and ``tails`` at ``place``.
        """
        tree = self._trees[row.tree]
        newest, drawn = row.generated[-1], len(row.generated)
        finish: FinishReason
        pauses = newest in tree.pause_ids and drawn >= tree.pause_after
        if (
            pauses
            or newest in tree.stop_ids
            or (tree.ends_by_text and self._text_ends(row.generated, tree))
        ):
            finish = "stop"
        elif drawn >= row.limit:
            finish = "length"
        else:
            return True
        if tree.grows and tree.session is not None:
            self._grow(tree.session, row, tails, place, cut)
        self._lengths[tree.max_tokens].add(drawn)
        self._unfinished[row.tree] -= 1
        if not self._unfinished[row.tree]:
            del self._groves[row.tree], self._trees[row.tree], self._unfinished[row.tree]
        made = Completion(token_ids=tuple(row.generated), finish=finish)
        self._listener.ended(row.tree, row.branch, row.sample, made)
        return False

    # Sessions

    def end_session(self, session: int) -> None:
        """Free what is held for a session."""
        self._sessions.pop(session, None)

    def session_trunk(
        self,
        session: int | None,
        ids: Sequence[int],
        length: int,
        *,
        again_from: Sequence[int] = (),
    ) -> Trunk:
        """Return a trunk for the first ``length`` ids, as full as a session can make it.

        Parameters
        ----------
        session, ids
            What is asked for; None for an empty trunk.
        length
            Ids that are needed.
        again_from
            Logits are wanted after the first of these many ids: the token before goes through the
            model again.
        """
        wanted = min((length, *(end - 1 for end in again_from)))
        held = self.session_tokens(session, ids, wanted)
        if session is None or not held:
            return Trunk(length)
        trunk = self._sessions[session].trunk
        # Nothing writes below what a session has: whoever needs no more shares it.
        return trunk if held == length else trunk.copy(held, length)

    def session_tokens(self, session: int | None, ids: Sequence[int], most: int) -> int:
        """Return how many of the first ``most`` ids a session holds; 0 if it holds others."""
        kept = self._sessions.get(session) if session is not None else None
        if kept is None:
            return 0
        held = min(most, kept.trunk.length)
        return held if tuple(ids[:held]) == kept.ids[:held] else 0

    def _grow(self, session: int, row: _Row, tails: Tails, place: int, cut: int) -> None:
        """Keep a row that ended: its trunk, followed by its tail.

        The newest token has not been through the model yet.
        """
        tree, trunk = self._trees[row.tree], self._groves[row.tree].trunk
        branch = tree.branches[row.branch]
        ids = (*tree.trunk_ids[:cut], *branch.suffix_ids, *row.generated[:-1])
        kept = self._sessions.get(session)
        own = kept is not None and kept.trunk is trunk and cut == trunk.length
        if not own or trunk.capacity < len(ids):
            trunk = trunk.copy(cut, _grown(len(ids)))
        for layer, keys in tails.keys.items():
            count = len(ids) - cut
            trunk.write(layer, keys[place, :, :count], tails.values[layer][place, :, :count])
        trunk.length = len(ids)
        self._sessions[session] = _Kept(ids, trunk)

    def _trunk_tokens(self) -> int:
        """Return the tokens that trunks have room for; one that is shared counts once."""
        trunks = {id(kept.trunk): kept.trunk for kept in self._sessions.values()}
        trunks.update((id(grove.trunk), grove.trunk) for grove in self._groves.values())
        return sum(trunk.capacity for trunk in trunks.values())

    # Rows and their memory

    def _running(self) -> npt.NDArray[np.int64]:
        """Return the places of the rows that have not ended."""
        return np.array([i for i, row in enumerate(self._rows) if row is not None], dtype=np.int64)

    def _leave_if_worthwhile(self) -> None:
        """Drop ended rows once they are an eighth of the batch: copying tails has its price."""
        kept = self._running()
        if 8 * (len(self._rows) - len(kept)) >= len(self._rows):
            self._keep(kept)

    def _make_room(self) -> None:
        """Make the tails long enough for one more token, sending rows back if they must."""
        needed = int(self._tails.lengths.max()) + 1
        if needed <= self._tails.capacity:
            return
        kept = [i for i, row in enumerate(self._rows) if row is not None]
        budget = self._limits.memory_bytes // self._model.bytes_per_token - self._trunk_tokens()
        # The last rows came last and have the least to lose; one row is always left to continue.
        while len(kept) > 1 and len(kept) * needed > budget:
            row = self._rows[kept.pop()]
            assert row is not None
            branch = self._trees[row.tree].branches[row.branch]
            suffix = (*branch.suffix_ids, *row.generated)
            self._queue.appendleft(_Waiting(row.tree, branch.cut, suffix, [row]))
            self.waiting += 1
        self._keep(np.array(kept, dtype=np.int64))

    def _keep(self, kept: npt.NDArray[np.int64]) -> None:
        nothing = np.zeros(0, dtype=np.int64)
        self._recompose(kept, [], Tails(nothing, 0), nothing, nothing)

    def _recompose(
        self,
        kept: npt.NDArray[np.int64],
        rows: list[_Row],
        tails: Tails,
        source: npt.NDArray[np.int64],
        cuts: npt.NDArray[np.int64],
    ) -> None:
        """Make the batch of the kept rows and of new rows, whose tails are ``tails[source]``."""
        self._rows = [self._rows[i] for i in kept] + list(rows)
        self._cuts = np.concatenate([self._cuts[kept], cuts])
        lengths = np.concatenate([self._tails.lengths[kept], tails.lengths[source]])
        self._tails = self._tails.recomposed(
            self._index(kept), tails, self._index(source), self._capacity(lengths)
        )
        trunks = [self._groves[row.tree].trunk for row in self._rows if row is not None]
        self._row_blocks = self._blocks(trunks, self._cuts, 1)
        self._row_cuts = self._index(self._cuts)
        last = [row.generated[-1] for row in self._rows if row is not None]
        self._last_tokens = torch.tensor(last, dtype=torch.int64, device=self._model.device)

    def _capacity(self, lengths: npt.NDArray[np.int64]) -> int:
        """Return the tail length to reserve: half as much again, within what can be needed."""
        if not len(lengths):
            return 0
        longest = int(lengths.max())
        left = max(row.limit - len(row.generated) for row in self._rows if row is not None)
        wanted = min(longest + left, _grown(longest))
        budget = self._limits.memory_bytes // self._model.bytes_per_token - self._trunk_tokens()
        return max(longest + 1, min(wanted, budget // len(lengths)))

    def _blocks(
        self, trunks: Sequence[Trunk], cuts: npt.NDArray[np.int64], tokens: int
    ) -> list[TrunkBlock]:
        return plan_blocks(
            trunks,
            cuts,
            queries_per_row=self._model.query_heads * tokens,
            most_waste=self._limits.most_waste,
            most_scores=self._limits.most_scores,
        )

    def _index(self, array: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(array).to(self._model.device)


def _widened(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


def _grown(tail: int) -> int:
    """Return the length that a tail may soon have."""
    return tail + max(32, tail // 2)


def _penalised(logits: Tensor, rows: Sequence[_Row], penalty: float) -> Tensor:
    """Return logits less the presence penalty of the tokens that each row has generated."""
    own = [(*row.before, *row.generated) for row in rows]
    row_index = np.repeat(np.arange(len(rows)), [len(ids) for ids in own])
    tokens = np.array([token for ids in own for token in ids], dtype=np.int64)
    where = tuple(torch.from_numpy(x).to(logits.device) for x in (row_index, tokens))
    # A token that was generated twice is written twice, with the same value.
    return logits.index_put(where, logits[where] - penalty)
