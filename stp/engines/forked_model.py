"""A Hugging Face model whose attention can be forked: loaded, tried out, or refused.

What cannot be forked (state-space layers, biases of attention, a rotation that depends on the
batch) is refused before anything is measured: by its configuration, or because a forked pass over a
few tokens differs from a plain one.
"""

import inspect
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from data.errors import ConfigError, EngineError, one_line
from stp.engines.checks import config_values
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
from stp.tokenizers import padding_ids

_LOG = logging.getLogger(__name__)

_DTYPES: Final = ("auto", "float32", "bfloat16", "float16", "float64")
_FORKABLE_LAYERS: Final = frozenset({"full_attention", "sliding_attention"})
# Their rotation depends on the longest position in the batch: a cached trunk would not be valid.
_BATCH_DEPENDENT_ROPE: Final = frozenset({"dynamic", "longrope"})
_CHECK_TOKENS: Final = 12
_CHECK_CUT: Final = 5
_CHECK_SUFFIX: Final = 5
_CHECK_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-3}
_CHECK_TOLERANCE_NARROW: Final = 0.1


class ForkedModel:
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
        if not config_values(self._folder):
            raise EngineError(f"{self._folder}/config.json cannot be used: it names no model")
        # Four seconds and 200 MB: not before the options are known to be right.
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(self._folder, local_files_only=True)
        # What a class raises for a value that it did not think of shares no base class.
        except Exception as error:
            raise EngineError(
                f"{self._folder}/config.json cannot be used: {one_line(error)}"
            ) from error

    def _load_model(self, dtype: str) -> Any:
        from transformers import AttentionInterface, AutoModelForCausalLM
        from transformers.utils import logging as transformers_logging

        AttentionInterface.register(FORK_ATTENTION, fork_attention)
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
            model.to(device=self.device)
        # As above; of files that are not weights likewise.
        except Exception as error:
            if FORK_ATTENTION in str(error):
                raise cannot_fork(self._folder, "its class has an attention of its own") from error
            said = f"model {self._folder} cannot be loaded: {one_line(error)}"
            raise EngineError(said) from error
        finally:
            if bars:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        if "logits_to_keep" not in inspect.signature(model.forward).parameters:
            raise cannot_fork(self._folder, f"{type(model).__name__} is too old a class")
        self._refuse_other_weights(model, loaded)
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
                    f"model {self._folder} is not a {type(model).__name__}, as its config.json "
                    "says: "
                    f"it {what} {some[0]} (and {len(some) - 1} more); restore its files"
                )

    def _refuse_what_cannot_fork(self, config: Any) -> None:
        """Refuse by configuration, before weights are read."""
        text = config.get_text_config()
        for name in ("num_attention_heads", "num_hidden_layers"):
            count = getattr(text, name, None)
            if not isinstance(count, int) or count < 1:
                raise cannot_fork(self._folder, f"its configuration has no {name}")
        odd = set(getattr(text, "layer_types", None) or ()) - _FORKABLE_LAYERS
        if odd:
            raise cannot_fork(self._folder, f"it has layers of type {', '.join(sorted(odd))}")
        rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
        kinds = {
            str(part.get("rope_type", part.get("type")))
            for part in (rope, *rope.values())
            if isinstance(part, dict)
        }
        if kinds & _BATCH_DEPENDENT_ROPE:
            kind = min(kinds & _BATCH_DEPENDENT_ROPE)
            raise cannot_fork(self._folder, f"its rope type {kind!r} changes with the batch")

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
        ids = padding_ids(self._folder, self.vocabulary)
        return torch.tensor(ids, device=self.device) if ids else None

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
            raise cannot_fork(self._folder, error) from error
        finally:
            self._model.set_attn_implementation(FORK_ATTENTION)
        scale = float(expected.abs().max())
        difference = float((forked - expected).abs().max()) / max(scale, 1e-12)
        tolerance = _CHECK_TOLERANCE.get(self.dtype_name, _CHECK_TOLERANCE_NARROW)
        _LOG.debug("fork check: relative difference %.2g", difference)
        if math.isnan(difference):
            raise EngineError(
                f"model {self._folder} gives logits that are not numbers: its weights are damaged, "
                f"or too large for {self.dtype_name}"
            )
        if not difference <= tolerance:
            raise cannot_fork(
                self._folder,
                f"a forked pass differs from a plain one by {difference:.1e} of the logits",
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


def cannot_fork(folder: Path, reason: str | BaseException) -> EngineError:
    """Return the error that says why a model is refused."""
    why = reason if isinstance(reason, str) else one_line(reason)
    return EngineError(
        f"the attention of model {folder} cannot be forked: {why}; "
        'run it with engine = "vllm" instead'
    )
