"""The transformers engine: any Hugging Face decoder whose attention can be forked.

A trajectory is prefilled once; every position's probes start from the cached prefix and decode as
one batch with those of other positions and trajectories (:mod:`stp.engines.decoding`). It sees
token ids only.
"""

import contextlib
import inspect
import logging
import math
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from data.errors import ConfigError, EngineError, MissingDependencyError, MisuseError
from stp.engines.base import Branch, Completion, Engine, PromptTree, Tree, Usage
from stp.engines.checks import TreeChecker, check_model_folder, weights_hash

try:
    import torch
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from torch import Tensor
    from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging
except ImportError as error:
    raise MissingDependencyError(
        f"the transformers engine needs {error.name}; install it with: "
        "pip install 'stp-engine[torch]'"
    ) from error

from stp.engines.decoding import BatchLimits, Decoder
from stp.engines.fork_attention import (
    FORK_ATTENTION,
    RowsStep,
    Tails,
    Trunk,
    TrunkStep,
    fork_attention,
    plan_blocks,
    running,
)
from stp.engines.scoring import TreeReader
from stp.engines.signals import SignalTree, check_signal_trees
from stp.engines.stop_texts import StopTextWatcher
from stp.tokenizers import load_tokenizer, unknown_ids

_LOG = logging.getLogger(__name__)

_DTYPES: Final = ("auto", "float32", "bfloat16", "float16", "float64")
_FORKABLE_LAYERS: Final = frozenset({"full_attention", "sliding_attention"})
# Their rotation depends on the longest position in the batch: a cached trunk would not be valid.
_BATCH_DEPENDENT_ROPE: Final = frozenset({"dynamic", "longrope"})
_CHECK_TOKENS: Final = 12
_CHECK_CUT: Final = 5
_CHECK_SUFFIX: Final = 5
_TRIED_CUT: Final = 6
_TRIED_TOKENS: Final = 10
_CHECK_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-3}
_CHECK_TOLERANCE_NARROW: Final = 0.1


ONE_THREAD_PARAMETERS = 50_000_000


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
        if threads is not None:
            torch.set_num_threads(threads)
        self._model = _ForkedModel(self._folder, _choose_device(device), dtype)
        if threads is None and self._model.parameters < ONE_THREAD_PARAMETERS:
            torch.set_num_threads(1)
        limit = self._model.context_limit if context_limit is None else context_limit
        if limit is None:
            raise ConfigError(
                f"the configuration of {self._folder} does not say how long its context is; set "
                "the engine option context_limit"
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
        self._to_read: deque[tuple[int, SignalTree]] = deque()
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
            raise EngineError(_no_fork(self._folder, _line(error))) from error
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

    def _take(self, ticket: int, tree: Tree) -> None:
        if isinstance(tree, SignalTree):
            self._to_read.append((ticket, tree))
            return
        self._check(tree)
        if self._watcher is None and tree.ends_by_text:
            self._watcher = StopTextWatcher(self._folder)
        self._decoder.submit(ticket, tree)
        least = tree.prefill_least_tokens
        self._count(ticket, least=least, block_least=least)

    def _work(self) -> None:
        """Give every row a token, and read one of the trees that are to be read."""
        try:
            if self._decoder.busy:
                self._decoder.step()
            if self._to_read:
                self._read(*self._to_read.popleft())
        except torch.OutOfMemoryError as error:
            raise EngineError(
                f"{self._folder}: out of memory on {self._model.device}; lower the engine options "
                f"max_rows ({self._limits.max_rows}), memory_bytes ({self._limits.memory_bytes}), "
                "trunk_chunk_tokens or suffix_chunk_tokens"
            ) from error

    def _read(self, ticket: int, tree: SignalTree) -> None:
        def on_tokens(count: int) -> None:
            self.pulse += 1
            self._count(ticket, prefill=count, least=count, block_least=count)

        reader = TreeReader(
            self._model,
            limits=self._limits,
            on_tokens=on_tokens,
            trunk_for=lambda asked, length, cuts: self._decoder.session_trunk(
                asked.session, asked.trunk_ids, length, again_from=cuts
            ),
        )
        self._tree_read(ticket, reader.read(tree))

    def _forget(self, tickets: frozenset[int]) -> None:
        self._decoder.drop(tickets)
        self._to_read = deque(entry for entry in self._to_read if entry[0] not in tickets)

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


class _ForkedModel:
    """A transformers model whose attention is :func:`stp.engines.fork_attention.fork_attention`."""

    def __init__(self, folder: Path, device: torch.device, dtype: str) -> None:
        if dtype not in _DTYPES:
            raise ConfigError(
                f"engine option dtype is {dtype!r}; choose one of {', '.join(_DTYPES)}"
            )
        if dtype == "auto" and device.type == "cpu":
            dtype = "float32"
        self._folder = folder
        self.device = device
        AttentionInterface.register(FORK_ATTENTION, fork_attention)
        config = self._load_config()
        self._refuse_what_cannot_fork(config)
        self._model: Any = self._load_model(dtype)
        text = config.get_text_config()
        self.parameters = sum(weights.numel() for weights in self._model.parameters())
        self.vocabulary: int = self._model.get_input_embeddings().weight.shape[0]
        self.context_limit: int | None = getattr(text, "max_position_embeddings", None)
        self.query_heads: int = text.num_attention_heads
        self.layers: int = text.num_hidden_layers
        self.class_name = type(self._model).__name__
        self.dtype_name = str(self._model.dtype).removeprefix("torch.")
        self.bytes_per_token = 0
        self._unsampled: Tensor | None = None
        self._check_fork()
        # From here on: the check compares whole logits.
        self._unsampled = self._ids_without_token()

    def _load_config(self) -> Any:
        try:
            return AutoConfig.from_pretrained(self._folder, local_files_only=True)
        except (OSError, ValueError, KeyError, *_WRONG_CONFIG) as error:
            raise EngineError(
                f"{self._folder}/config.json cannot be used: {_line(error)}"
            ) from error

    def _load_model(self, dtype: str) -> Any:
        model: Any
        loaded: Mapping[str, Iterable[Any]]
        bars = transformers_logging.is_progress_bar_enabled()
        # Its bars would break into those of the command line.
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            load: Any = AutoModelForCausalLM.from_pretrained
            model, loaded = load(
                self._folder,
                dtype=dtype,
                attn_implementation=FORK_ATTENTION,
                local_files_only=True,
                output_loading_info=True,
            )
        except (
            OSError,
            ValueError,
            KeyError,
            RuntimeError,
            ImportError,
            SafetensorError,
            *_WRONG_CONFIG,
        ) as error:
            if FORK_ATTENTION in str(error):
                raise EngineError(
                    _no_fork(self._folder, "its class has an attention of its own")
                ) from error
            raise EngineError(f"model {self._folder} cannot be loaded: {_line(error)}") from error
        finally:
            if bars:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        if "logits_to_keep" not in inspect.signature(model.forward).parameters:
            raise EngineError(_no_fork(self._folder, f"{type(model).__name__} is too old a class"))
        self._refuse_other_weights(model, loaded)
        model.to(device=self.device)
        return model.eval()

    def _refuse_other_weights(self, model: Any, loaded: Mapping[str, Iterable[Any]]) -> None:
        """Refuse weights that are not those of the class: the library takes random ones, or none.

        What a checkpoint has beside the decoder, such as a vision tower, does no harm.
        """
        layers = {name for name, _ in model.named_modules() if name.rpartition(".")[2].isdecimal()}
        inside = [
            name
            for name in loaded["unexpected_keys"]
            if "rotary_emb" not in name and any(name.startswith(f"{layer}.") for layer in layers)
        ]
        for names, what in ((loaded["missing_keys"], "lacks"), (inside, "has, unlike the class,")):
            some = sorted(str(name) for name in names)
            if some:
                raise EngineError(
                    f"model {self._folder} is no {type(model).__name__}, as its config.json says: "
                    f"it {what} {some[0]} (and {len(some) - 1} more); restore its files"
                )

    def _refuse_what_cannot_fork(self, config: Any) -> None:
        """Refuse by configuration, before weights are read."""
        text = config.get_text_config()
        for name in ("num_attention_heads", "num_hidden_layers"):
            if not isinstance(getattr(text, name, None), int):
                raise EngineError(_no_fork(self._folder, f"its configuration has no {name}"))
        odd = set(getattr(text, "layer_types", None) or ()) - _FORKABLE_LAYERS
        if odd:
            raise EngineError(
                _no_fork(self._folder, f"it has layers of type {', '.join(sorted(odd))}")
            )
        rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
        kinds = {
            str(part.get("rope_type", part.get("type")))
            for part in (rope, *rope.values())
            if isinstance(part, dict)
        }
        if kinds & _BATCH_DEPENDENT_ROPE:
            kind = min(kinds & _BATCH_DEPENDENT_ROPE)
            raise EngineError(
                _no_fork(self._folder, f"its rope type {kind!r} changes with the batch")
            )

    def forward(
        self,
        step: TrunkStep | RowsStep,
        input_ids: Tensor,
        position_ids: Tensor,
        logits_at: Tensor,
    ) -> Tensor:
        """Run one pass; return logits [R, len(logits_at), V] at these places of the S tokens.

        Ids that stand for no token cannot be drawn from them.
        """
        logits = self.forward_seen(step, input_ids, position_ids, logits_at, ())[0]
        if self._unsampled is not None:
            logits = logits.index_fill(-1, self._unsampled, -math.inf)
        return logits

    def _ids_without_token(self) -> Tensor | None:
        """Return the ids with which the model's vocabulary is padded; None if there are none."""
        if not (self._folder / "tokenizer.json").is_file():
            return None
        ids = unknown_ids(load_tokenizer(self._folder), self.vocabulary)
        # A tokenizer of another model says nothing of this one: then all ids may be drawn.
        if not ids or len(ids) == self.vocabulary:
            return None
        return torch.tensor(ids, device=self.device)

    def forward_seen(
        self,
        step: TrunkStep | RowsStep,
        input_ids: Tensor,
        position_ids: Tensor,
        logits_at: Tensor,
        layers: Sequence[int],
    ) -> tuple[Tensor, list[Tensor]]:
        """Run one pass; return logits as :meth:`forward`, and each layer's states [R, S, W]."""
        with running(step):
            # 0 and an empty choice would mean all logits.
            keep = logits_at if logits_at.numel() else 1
            output = self._model(
                input_ids=input_ids,
                position_ids=position_ids,
                use_cache=False,
                output_hidden_states=bool(layers),
                logits_to_keep=keep,
            )
        states = [output.hidden_states[layer] for layer in layers]
        return output.logits[:, : logits_at.numel()], states

    @torch.inference_mode()
    def _check_fork(self) -> None:
        """Compare a forked pass with the model's own attention on a few tokens.

        State-space layers, attention biases and whatever else does not pass through the attention
        interface show up here, before anything is measured.
        """
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(self.vocabulary, (1, _CHECK_TOKENS), generator=generator)
        ids = ids.to(self.device)
        try:
            forked = self._forked_logits(ids)
            self._model.set_attn_implementation("eager")
            expected = self._model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, 0]
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            raise EngineError(_no_fork(self._folder, _line(error))) from error
        finally:
            self._model.set_attn_implementation(FORK_ATTENTION)
        scale = float(expected.abs().max())
        difference = float((forked - expected).abs().max()) / max(scale, 1e-12)
        tolerance = _CHECK_TOLERANCE.get(self.dtype_name, _CHECK_TOLERANCE_NARROW)
        _LOG.debug("fork check: relative difference %.2g", difference)
        if math.isnan(difference):
            raise EngineError(
                f"model {self._folder} gives logits that are no numbers: its weights are damaged, "
                f"or too large for {self.dtype_name}"
            )
        if not difference <= tolerance:
            raise EngineError(
                _no_fork(
                    self._folder,
                    f"a forked pass differs from a plain one by {difference:.1e} of the logits",
                )
            )

    def _forked_logits(self, ids: Tensor) -> Tensor:
        """Return the last logits [V] of ids [1, n], run as trunk, suffix and decoded tokens."""
        trunk = Trunk(_CHECK_CUT + 1)
        places = torch.tensor([0], device=ids.device)
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        # One token more than is kept: a fork must not see it.
        other = ids[:, : _CHECK_CUT + 1].clone()
        other[0, -1] = (other[0, -1] + 1) % self.vocabulary
        step = TrunkStep(trunk, 1 << 20)
        self.forward(step, other, positions[:, : _CHECK_CUT + 1], places)
        layers = len(trunk.keys)
        expected_layers = self._model.config.get_text_config().num_hidden_layers
        if layers != expected_layers:
            raise ValueError(f"{layers} of {expected_layers} layers have attention to fork")
        self.bytes_per_token = sum(
            x.element_size() * x.shape[0] * x.shape[2]
            for x in (*trunk.keys.values(), *trunk.values.values())
        )
        trunk.length = _CHECK_CUT + 1
        cuts = np.array([_CHECK_CUT])
        tails = Tails(np.array([0]), ids.shape[1])
        logits = torch.empty(0)
        done = 0
        for width in (_CHECK_SUFFIX, 1, 1):
            here = slice(_CHECK_CUT + done, _CHECK_CUT + done + width)
            step_of_rows = RowsStep(
                tails=tails,
                blocks=plan_blocks(
                    [trunk], cuts, queries_per_row=self.query_heads, most_waste=0, most_scores=1
                ),
                cuts=torch.from_numpy(cuts).to(ids.device),
                tail_index=torch.arange(done, done + width, device=ids.device)[None],
                longest=done + width,
                even=width == 1,
            )
            places = torch.tensor([width - 1], device=ids.device)
            logits = self.forward(step_of_rows, ids[:, here], positions[:, here], places)[0, 0]
            done += width
        return logits

    def close(self) -> None:
        """Drop the weights."""
        self._model = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


_WRONG_CONFIG: Final = (AssertionError, ArithmeticError, TypeError, StrictDataclassError)
"""What a model's class raises for a configuration with a value that it did not think of."""


def _no_fork(folder: Path, reason: str) -> str:
    return (
        f"the attention of model {folder} cannot be forked: {reason}; "
        'run it with engine = "vllm" instead'
    )


def _line(error: BaseException) -> str:
    """Return an error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__
