"""The transformers engine: any Hugging Face decoder whose attention can be forked.

A trajectory is prefilled once; every position's probes start from the cached prefix and decode as
one batch with those of other positions and trajectories (:mod:`stp.engines.decoding`). It sees
token ids only.
"""

import contextlib
import logging
import os
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from data.errors import ConfigError, EngineError, MissingDependencyError, MisuseError
from stp.engines.admission import Gathering
from stp.engines.base import AnyTree, Branch, Completion, Engine, PromptTree, Usage
from stp.engines.checks import TreeChecker, check_model_folder, weights_hash

try:
    import torch

    # It is loaded with the model: loading takes longer than everything that comes before.
    if find_spec("transformers") is None:
        raise ModuleNotFoundError(name="transformers")

    from stp.engines.forked_model import ForkedModel, cannot_fork
except ImportError as error:
    raise MissingDependencyError(
        f"the transformers engine needs {error.name}; install it with: "
        "pip install 'stp-engine[torch]'"
    ) from error

from stp.engines.decoding import BatchLimits, Decoder
from stp.engines.scoring import TreeReader
from stp.engines.signals import SignalTree, check_signal_trees
from stp.engines.stop_texts import StopTextWatcher

_LOG = logging.getLogger(__name__)

_TRIED_CUT: Final = 6
_TRIED_TOKENS: Final = 10


ONE_THREAD_PARAMETERS = 50_000_000
MOST_THREADS = 1_024


class TransformersEngine(Engine):
    """Runs a model with transformers and PyTorch, on a GPU if there is one.

    Parameters
    ----------
    model_path
        Folder of a Hugging Face model with safetensors.
    device
        ``"cuda"``, ``"cuda:1"``, ``"cpu"``, ...; None for a GPU if there is one.
    dtype
        ``"float32"``, ``"bfloat16"``, ``"float16"``, ``"float64"``; ``"auto"`` is the model's own
        on a GPU and float32 on a CPU, where narrower types are slower.
    threads
        CPU threads; None is PyTorch's choice, or one where a model is so small (below
        :data:`ONE_THREAD_PARAMETERS`) that threads wait for each other longer than they work.
    context_limit
        Most ids of a sample; None for what the model's configuration says.
    max_rows
        Samples that decode together.
    memory_bytes
        Keys and values held at once; None for 80 % of what a GPU has free after loading, a quarter
        of a CPU machine's memory.
    trunk_chunk_tokens
        Trunk tokens per forward pass.
    suffix_chunk_tokens
        Suffix tokens per forward pass.

    Raises
    ------
    data.errors.MisuseError
        If there is no model in the folder, or an option is out of its range.
    data.errors.EngineError
        If the model cannot be loaded, or its attention cannot be forked.
    """

    def __init__(
        self,
        model_path: str | Path,
        *,
        device: str | None = None,
        dtype: str = "auto",
        threads: int | None = None,
        context_limit: int | None = None,
        max_rows: int = 512,
        memory_bytes: int | None = None,
        trunk_chunk_tokens: int = 1024,
        suffix_chunk_tokens: int = 8192,
    ) -> None:
        super().__init__()
        self._folder = check_model_folder(model_path)
        positive = {
            "threads": threads,
            "context_limit": context_limit,
            "max_rows": max_rows,
            "memory_bytes": memory_bytes,
            "trunk_chunk_tokens": trunk_chunk_tokens,
            "suffix_chunk_tokens": suffix_chunk_tokens,
        }
        for name, value in positive.items():
            if value is not None and value < 1:
                raise ConfigError(f"engine option {name} is {value}, but must be at least 1")
        if threads is not None and threads > MOST_THREADS:
            # PyTorch would begin them all, and take the memory of the machine for them.
            raise ConfigError(
                f"engine option threads is {threads}, but must be at most {MOST_THREADS:,}"
            )
        if threads is not None:
            torch.set_num_threads(threads)
        self._model = ForkedModel(self._folder, _choose_device(device), dtype)
        if threads is None and self._model.parameters < ONE_THREAD_PARAMETERS:
            torch.set_num_threads(1)
        limit = self._model.context_limit if context_limit is None else context_limit
        if limit is None:
            raise ConfigError(
                f"the configuration of {self._folder} does not say how long its context is; set "
                "the engine option context_limit (under [engine.options], or by --option "
                "context_limit=VALUE)"
            )
        self._context_limit = limit
        on_gpu = self._model.device.type == "cuda"
        self._limits = BatchLimits(
            max_rows=max_rows,
            memory_bytes=_free_bytes(self._model.device) if memory_bytes is None else memory_bytes,
            trunk_chunk_tokens=trunk_chunk_tokens,
            suffix_chunk_tokens=suffix_chunk_tokens,
            # Measured: a block's calls cost as much as some 8,000 scores on a CPU core.
            most_waste=1 << 21 if on_gpu else 1 << 13,
            most_scores=1 << 27 if on_gpu else 1 << 23,
            most_logits=1 << 27 if on_gpu else 1 << 19,
        )
        self._check = TreeChecker(context_limit=limit, vocabulary=self._model.vocabulary)
        self._watcher: StopTextWatcher | None = None
        self._weights_hash: str | None = None
        self._to_read: dict[int, SignalTree] = {}
        self._gathering = Gathering()
        self._decoder = Decoder(
            self._model,
            limits=self._limits,
            context_limit=limit,
            text_ends=self._text_ends,
            listener=self,
        )
        self._try_out()

    def _try_out(self) -> None:
        """Sample a little as a campaign does, so that a model that fails at it fails here.

        Branches of several lengths with several samples each: what is one row or one length alone
        works in classes in which the rest does not.

        Raises
        ------
        data.errors.EngineError
            If the model's class cannot do it.
        """
        if self._context_limit < _TRIED_TOKENS:
            return
        ids = tuple(token % self._model.vocabulary for token in range(1, _TRIED_CUT + 1))
        tree = PromptTree(
            trunk_ids=ids,
            branches=tuple(
                Branch(cut=cut, suffix_ids=ids[:suffix], seeds=(0, 1))
                for cut, suffix in ((1, 3), (3, 1), (_TRIED_CUT, 0))
            ),
            max_tokens=2,
        )
        try:
            # What our own limits refuse (a memory of a few bytes) is said where it is asked for.
            with contextlib.suppress(EngineError, MisuseError):
                self.generate([tree])
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise cannot_fork(self._folder, error) from error
        self.usage, self.pulse = Usage(), 0

    @property
    def context_limit(self) -> int:
        """Most token ids, prompt and generation together, that a sample may have."""
        return self._context_limit

    @property
    def rows(self) -> int:
        """Samples that decode together at most."""
        return self._limits.max_rows

    @property
    def repeats_exactly(self) -> bool:
        """On a CPU: the same batch gives the same floating-point numbers there."""
        return self._model.device.type == "cpu"

    @property
    def _waiting(self) -> int:
        return self._decoder.waiting + len(self._to_read)

    def _take(self, ticket: int, tree: AnyTree) -> None:
        if isinstance(tree, SignalTree):
            self._to_read[ticket] = tree
            return
        self._check(tree)
        if self._watcher is None and tree.ends_by_text:
            self._watcher = StopTextWatcher(self._folder)
        self._decoder.submit(ticket, tree)
        least = tree.prefill_least_tokens
        self._count(ticket, least=least, block_least=least)

    def _work(self) -> None:
        """Give every row a token, and read trees: of sessions those that wait, of others one."""
        try:
            if self._decoder.busy:
                self._decoder.step()
            if self._to_read:
                self._read()
        except torch.OutOfMemoryError as error:
            raise EngineError(
                f"{self._folder}: out of memory on {self._model.device}; lower the engine options "
                f"max_rows ({self._limits.max_rows}), memory_bytes ({self._limits.memory_bytes}), "
                "trunk_chunk_tokens or suffix_chunk_tokens"
            ) from error

    def _read(self) -> None:
        """Read the first tree of no session, and all of sessions once they are worth a pass."""
        of_sessions = self._of_sessions()
        others = (ticket for ticket, tree in self._to_read.items() if tree.session is None)
        if (first := next(others, None)) is not None:
            self._read_together([first])
        if of_sessions and self._gathering.enough(len(of_sessions), self._decoder.active):
            self._read_together(of_sessions)

    def _of_sessions(self) -> list[int]:
        """Return the tickets of the trees of sessions that wait to be read."""
        return [ticket for ticket, tree in self._to_read.items() if tree.session is not None]

    def _read_together(self, tickets: Sequence[int]) -> None:
        def on_tokens(number: int, count: int) -> None:
            self.pulse += 1
            self._count(tickets[number], prefill=count, least=count, block_least=count)

        reader = TreeReader(
            self._model,
            limits=self._limits,
            on_tokens=on_tokens,
            held_for=lambda asked, most: self._decoder.session_tokens(
                asked.session, asked.trunk_ids, most
            ),
            trunk_for=lambda asked, length, cuts: self._decoder.session_trunk(
                asked.session, asked.trunk_ids, length, again_from=cuts
            ),
        )
        found = reader.read([self._to_read[ticket] for ticket in tickets])
        for ticket, signals in zip(tickets, found, strict=True):
            del self._to_read[ticket]
            self._tree_read(ticket, signals)

    def _forget(self, tickets: frozenset[int]) -> None:
        self._decoder.drop(tickets)
        self._to_read = {t: tree for t, tree in self._to_read.items() if t not in tickets}
        if not self._of_sessions():
            # What was lost by those that are gone is no reason for the next.
            self._gathering = Gathering()

    def end_session(self, session: int) -> None:
        """Free the keys and values that a session holds."""
        self._decoder.end_session(session)

    def prefilled(self, ticket: int, tokens: int) -> None:
        """Count prompt tokens, as the decoder tells of them."""
        self.pulse += 1
        self._count(ticket, prefill=tokens)

    def advanced(self) -> None:
        """Show that the model gives tokens."""
        self.pulse += 1

    def ended(self, ticket: int, branch: int, sample: int, made: Completion) -> None:
        """Count a sample, as the decoder tells of it."""
        self._count(ticket, generated=len(made.token_ids))
        self._sample_ended(ticket, branch, sample, made)

    def _text_ends(self, token_ids: Sequence[int], tree: PromptTree) -> bool:
        assert self._watcher is not None
        if self._watcher.met(token_ids, tree.stop_texts):
            return True
        return tree.box_after is not None and self._watcher.closes_box(token_ids, tree.box_after)

    @property
    def layers(self) -> int:
        """Number of the last layer whose hidden states can be read."""
        return self._model.layers

    def check_signals(self, trees: Sequence[SignalTree]) -> None:
        """Refuse trees that cannot be read; see :meth:`stp.engines.base.Engine.check_signals`."""
        check_signal_trees(
            trees,
            context_limit=self._context_limit,
            vocabulary=self._model.vocabulary,
            layers=self.layers,
        )

    def describe(self) -> dict[str, str | int | float | None]:
        """Return what a manifest should know about engine, model and machine."""
        if self._weights_hash is None:
            self._weights_hash = weights_hash(self._folder)
        device = self._model.device
        return {
            "engine": "transformers",
            "transformers_version": version("transformers"),
            "torch_version": torch.__version__,
            "model_class": self._model.class_name,
            "weights_sha256": self._weights_hash,
            "device": str(device),
            "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "dtype": self._model.dtype_name,
            "threads": torch.get_num_threads(),
            "context_limit": self._context_limit,
            "max_rows": self._limits.max_rows,
            "memory_bytes": self._limits.memory_bytes,
            "trunk_chunk_tokens": self._limits.trunk_chunk_tokens,
            "suffix_chunk_tokens": self._limits.suffix_chunk_tokens,
        }

    def close(self) -> None:
        """Free the model."""
        self._model.close()


def _choose_device(device: str | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise ConfigError(f"engine option device is {device!r}; try cuda or cpu") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"engine option device is {device!r}, but PyTorch sees no GPU here")
    return chosen


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(0.8 * torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
