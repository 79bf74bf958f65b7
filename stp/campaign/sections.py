"""The tables of a campaign file: what can be set in each, and what it is when it is left out.

Every setting that is left out has the value of the paper (002, section 4.1 and appendix A). A new
setting is a line here. Of engines only their names are known.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from data.errors import ConfigError
from data.hints import did_you_mean
from data.prompts import OWN, OWN_VERSION, Prompts, load_prompts, make_prompts
from stp.engines.names import engine_names

SCHEDULING_OPTIONS = frozenset(
    {
        # transformers
        "device",
        "max_rows",
        "memory_bytes",
        "suffix_chunk_tokens",
        "threads",
        "trunk_chunk_tokens",
        # server
        "api_key_env",
        "attempts",
        "concurrency",
        "timeout_seconds",
        "url",
        # vLLM
        "async_scheduling",
        "cache_share",
        "cpu_offload_gb",
        "data_parallel_size",
        "distributed_executor_backend",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_num_batched_tokens",
        "max_num_seqs",
        "max_parallel_loading_workers",
        "num_gpu_blocks_override",
        "pipeline_parallel_size",
        "swap_space",
        "tensor_parallel_size",
    }
)
"""Engine options that say how the work is done, not what is asked; a folder accepts new values."""

LARGEST_COUNT = 2**31 - 1
"""The tables hold counts as 32-bit integers."""

LARGEST_REPETITION = 1_000_000
"""Most samples of one thing. Nobody wants more; a slip of the keyboard is caught before it runs."""

Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)]
Repetition = Annotated[int, Field(ge=1, le=LARGEST_REPETITION, strict=True)]

Mode = Literal["thinking", "direct", "thinking_off"]


class Section(BaseModel):
    """A table of a campaign file. Frozen; a key that it has not is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelConfig(Section):
    """A reasoning model.

    Attributes
    ----------
    path
        A folder, ``"demo"`` for the model shipped with the project, or an id on the Hugging Face
        hub. A relative folder is looked for beside the campaign file, then in the current folder.
    name
        What the model is called in tables, reports and seeds. Left out: the last part of ``path``.
    family
        Its thinking format: a family's name or a TOML file. Left out: found by the model's name.
    revision
        Hub revision. Left out: the hub's main one.
    """

    path: str = Field(min_length=1)
    name: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ -]*$", max_length=200)
    family: str | None = None
    revision: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_from_path(cls, values: object) -> object:
        if isinstance(values, Mapping) and isinstance(values.get("path"), str):
            last = str(values["path"]).rstrip("/").rpartition("/")[2]
            return {**values, "name": values.get("name") or last}
        return values


class BenchmarkConfig(Section):
    """A benchmark, whole or its first questions.

    Attributes
    ----------
    name
        A registered benchmark, or a TOML file that describes the user's own.
    limit
        Number of questions. Left out: all.
    data_dir
        Folder with the question file, where the benchmark needs one.
    """

    name: str = Field(min_length=1)
    limit: Count | None = None
    data_dir: str | None = None


class EngineConfig(Section):
    """What runs the models.

    Attributes
    ----------
    name
        An engine: ``"transformers"``, ``"vllm"`` or ``"server"``.
    actors
        Engines side by side with ``--ray``. Left out: as many as the cluster's GPUs allow, or one a
        node without GPUs.
    gpus_per_actor
        GPUs of each. Left out: as many as it runs in parallel (``tensor_parallel_size``), or none
        where the cluster has none.
    units_in_flight
        Units under way at once: new ones begin while the last samples of others end. Left out: as
        many as keep the engine busy, or one where it would give other tokens to the last bit.
    stall_seconds
        How long it may return nothing before it counts as hanging, and the run ends.
    options
        What the engine gets as it is; a table for an argument that takes several values.
    """

    name: str = "transformers"
    actors: Count | None = None
    gpus_per_actor: int | None = Field(default=None, ge=0, le=LARGEST_COUNT, strict=True)
    units_in_flight: Count | None = None
    stall_seconds: float = Field(default=3600.0, gt=0, le=LARGEST_COUNT)
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        names = engine_names()
        if name not in names:
            raise ValueError(
                f"engine.name = {json.dumps(name)}: no such engine{did_you_mean(name, names)} "
                f"(there are {', '.join(names)})"
            )
        return name


class GenerationConfig(Section):
    """How trajectories are made.

    Attributes
    ----------
    mode
        ``"thinking"``: the model thinks, and is probed along the way. ``"direct"``: the prompt asks
        for an answer without reasoning. ``"thinking_off"``: thinking is turned off. The last two
        have one answer per trajectory and no thinking.
    trajectories
        Per question.
    thinking_limit
        Most thinking tokens of a trajectory.
    context_limit
        Most tokens, prompt and output together. The engine's own limit counts where it is lower.
    answer_tokens
        Most tokens of the original answer, after the thinking.
    """

    mode: Mode = "thinking"
    trajectories: Repetition = 16
    thinking_limit: Count = 32_768
    context_limit: Count = 65_536
    answer_tokens: Count = 4_096


class ProbingConfig(Section):
    r"""How trajectories are probed.

    Attributes
    ----------
    step_tokens
        Target length b of a step, in tokens.
    steps
        ``"merged"``, as in the paper: blocks are merged once the trajectory has ended.
        ``"causal"``: a step ends at the first boundary that brings it to b tokens or more, so that
        a method that runs live stops at the very same positions.
    probes
        Answers sampled at every position.
    answer_tokens
        Most tokens of a probe's answer, its opening not counted.
    plan
        ``"uniform"``: as many at every position. ``"adaptive"``: ``first_probes`` everywhere, then
        rounds of more, up to ``probes``, at the positions that are most informative per token.
    first_probes, rounds, share
        Of the adaptive plan: answers at every position in the first pass; further rounds; answers
        to spend in all, as a share of ``probes`` everywhere.
    answer_opening
        What of every probe's answer is written for the model, such as ``"\boxed{"``; the model
        continues from there. Left out: nothing, as in the paper. Such probes answer another
        question than free ones; ``stp probes compare`` says how far apart they are.
    answer_end
        ``"turn"``: an answer ends with the model's turn, as in the paper. ``"box"``: the first
        ``\boxed{...}`` that is closed counts, and the answer ends with it. Cheaper, and another
        question where models correct themselves or give several boxes.
    """

    step_tokens: Count = 256
    steps: Literal["merged", "causal"] = "merged"
    probes: Repetition = 16
    answer_tokens: Count = 4_096
    answer_opening: str = Field(default="", max_length=10_000)
    answer_end: Literal["turn", "box"] = "turn"
    plan: Literal["uniform", "adaptive"] = "uniform"
    first_probes: Repetition = 4
    rounds: Annotated[int, Field(ge=1, le=100, strict=True)] = 3
    share: float = Field(default=0.35, gt=0, le=1)

    @property
    def everywhere(self) -> int:
        """Answers that every position has, before any round of more."""
        return self.probes if self.plan == "uniform" else self.first_probes

    @model_validator(mode="after")
    def _plan_can_be(self) -> "ProbingConfig":
        if self.plan == "uniform":
            return self
        if self.first_probes >= self.probes:
            raise ValueError(
                f"probing.first_probes is {self.first_probes}: an adaptive plan begins with fewer "
                f"than probes, {self.probes}"
            )
        if self.share * self.probes <= self.first_probes:
            raise ValueError(
                f"probing.share = {self.share:g} of {self.probes} probes is no more than the "
                f"{self.first_probes} of the first pass; raise share or lower first_probes"
            )
        return self


class SamplingConfig(Section):
    """Sampling parameters that replace the model family's. Left out: the family's."""

    temperature: float | None = Field(default=None, ge=0, strict=True)
    top_p: float | None = Field(default=None, gt=0, le=1, strict=True)
    top_k: int | None = Field(default=None, ge=0, le=LARGEST_COUNT, strict=True)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2, strict=True)


class ShardConfig(Section):
    """How the work is cut into units. A unit is lost when a run is killed in its middle.

    Attributes
    ----------
    questions
        Questions in a unit.
    trajectories
        Trajectories of each question in a unit. Left out: all of them.
    """

    questions: Count = 4
    trajectories: Count | None = None


class PromptsConfig(Section):
    """The words around the questions (:mod:`data.prompts`); left out: our own.

    In a campaign file ``prompts`` may be the path of a file of prompts. The campaign keeps their
    texts.

    Attributes
    ----------
    name
        What tables and reports call the wording.
    version
        Of our own, or a digest of the texts.
    texts
        The texts that replace our own: a campaign uses the instructions.
    """

    name: str = OWN
    version: str = OWN_VERSION
    texts: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _checked(cls, values: object) -> object:
        if isinstance(values, str):
            prompts = load_prompts(values)
        elif isinstance(values, Mapping) and set(values) <= set(cls.model_fields):
            texts = values.get("texts", {})
            prompts = make_prompts(values.get("name", OWN), texts, {}, where="prompts")
        else:
            return values
        if prompts.questions:
            raise ConfigError(
                f"prompts {prompts.name}: [questions] is for `stp think`; a campaign's questions "
                "are those of its benchmarks"
            )
        stored = values.get("version") if isinstance(values, Mapping) else None
        # A campaign's own file says with which words it was made, whatever ours are now.
        version = stored or prompts.version
        return {"name": prompts.name, "texts": dict(prompts.texts), "version": version}

    @property
    def wording(self) -> Prompts:
        """The wording itself."""
        return Prompts(name=self.name, texts=self.texts, version=self.version)
