"""From a model's name to its responder."""

import hashlib
import importlib
import importlib.util
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from data.errors import ConfigError, MisuseError
from data.hints import did_you_mean
from stp.asking.base import Responder, Settings
from stp.asking.providers import PROVIDERS

if TYPE_CHECKING:
    from stp.engines.base import Engine

_LOG = logging.getLogger(__name__)

_FUNCTION = re.compile(r"(?P<where>[\w./\\~-]+(?:\.py)?):(?P<name>[A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Which model answers, and how it is run.

    Attributes
    ----------
    model
        ``"demo"``, a model folder or a hub id (our engines); ``"provider/model"`` (an API);
        ``"module:function"`` or ``"file.py:function"`` (a user's own function).
    engine
        ``"transformers"``, ``"vllm"``, ``"api"`` or ``"function"``; by default what the model's
        name looks like; of local models vLLM where it is installed and takes the model, else
        transformers.
    base_url
        Address of an OpenAI-compatible server; makes the model one of an API.
    family
        Thinking format of a local model: a family's name, a TOML file, or ``"none"`` for a model
        that does not think. By default found by its name, then by its chat template. For a user's
        own server it says how thinking is turned on and off.
    revision
        Hub revision of a local model.
    options
        Of the engine or the provider.
    batch
        Requests at a time; by default what suits the engine.
    """

    model: str
    engine: str | None = None
    base_url: str | None = None
    family: str | None = None
    revision: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: int | None = None

    @property
    def short_name(self) -> str:
        """The last part of the model's name."""
        return self.model.rstrip("/").rpartition("/")[2] or self.model

    def kind(self) -> str:
        """Return which engine it is.

        Examples
        --------
        >>> [ModelSpec(model=m).kind() for m in ("demo", "openai/gpt-5", "Qwen/Qwen3-8B", "m:ask")]
        ['transformers', 'api', 'transformers', 'function']
        """
        if self.engine is not None:
            return self.engine
        if self.base_url is not None:
            return "api"
        if self.model == "demo":
            return "transformers"
        if Path(self.model).expanduser().is_dir():
            return _local_engine()
        if "/" in self.model and self.model.partition("/")[0] in PROVIDERS:
            return "api"
        return "function" if _FUNCTION.fullmatch(self.model) else _local_engine()


def _local_engine() -> str:
    """Return the default engine of a local model: vLLM first (paper 003, section 3.2)."""
    return "vllm" if importlib.util.find_spec("vllm") else "transformers"


def open_responder(spec: str | ModelSpec) -> Responder:
    """Open the responder of a model.

    Parameters
    ----------
    spec
        A model's name, or more about it.

    Raises
    ------
    data.errors.ConfigError
        If an option cannot be used, or a provider's key is missing.
    data.errors.MisuseError
        If there is no such model.
    data.errors.MissingDependencyError
        If the package that runs it is not installed.
    """
    if isinstance(spec, str):
        spec = ModelSpec(model=spec)
    kind = spec.kind()
    if kind == "api":
        return _open_api(spec)
    if kind == "function":
        return _open_function(spec)
    from stp.engines.names import engine_names

    known = (*engine_names(), "api", "function")
    if kind not in known:
        raise ConfigError(
            f"no engine {kind!r}{did_you_mean(kind, known)} (there are {', '.join(known)})"
        )
    return _open_local(spec, kind)


def _open_api(spec: ModelSpec) -> Responder:
    from stp.asking.api import DEFAULT_CONNECTIONS, ApiResponder
    from stp.formats import get_family

    if spec.family is not None and spec.base_url is None:
        raise ConfigError(
            "family is for local models and servers of your own; a provider separates thinking "
            "itself"
        )
    family = None if spec.family in (None, "none") else get_family(str(spec.family))
    return ApiResponder(
        spec.model,
        base_url=spec.base_url,
        connections=spec.batch or DEFAULT_CONNECTIONS,
        options=dict(spec.options),
        family=family,
        plain=spec.family == "none",
    )


def _open_function(spec: ModelSpec) -> Responder:
    from stp.asking.function import CallableResponder

    found = _FUNCTION.fullmatch(spec.model)
    if found is None:
        raise MisuseError(f"model {spec.model!r}: write module:function or file.py:function")
    if spec.family is not None:
        raise ConfigError("family is for local models; a function returns its thinking separately")
    where, name = found["where"], found["name"]
    try:
        if where.endswith(".py"):
            path = Path(where).expanduser()
            file = importlib.util.spec_from_file_location(path.stem, path)
            if file is None or file.loader is None:
                raise ImportError(f"{where} is not a Python file")
            module = importlib.util.module_from_spec(file)
            file.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
        function = getattr(module, name)
    except KeyboardInterrupt:
        raise
    # Loading runs third-party code, which may also end the process.
    except BaseException as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise MisuseError(f"model {spec.model!r} cannot be loaded: {kind}{error}") from error
    unknown = sorted(set(spec.options) - {"workers"})
    if unknown:
        raise ConfigError(f"a function has no option {unknown[0]!r}; there is workers")
    return CallableResponder(
        function,
        name=name,
        **{"workers": spec.batch or 1, **spec.options},
        source_hash=_source_hash(module),
    )


def _source_hash(module: ModuleType) -> str | None:
    """Return the digest of a module's file: a function of another one is another model."""
    try:
        # Modules that are built in have no such attribute, packages without a file have None.
        file = Path(getattr(module, "__file__", None) or "")
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:  # It is not a file, or one in an archive.
        return None


def _first_engine(spec: ModelSpec, kind: str, folder: Path) -> "tuple[Engine, str]":
    """Open an engine: transformers if vLLM was not asked for and cannot run the model."""
    from stp.engines import open_engine

    try:
        return open_engine(kind, folder, **spec.options), kind
    # What a library says of a model or a device that it does not take has no common class.
    except Exception as error:
        if kind != "vllm" or spec.engine is not None:
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        _LOG.warning("vLLM cannot run %s (%s); transformers runs it", spec.model, line[:300])
        return open_engine("transformers", folder, **spec.options), "transformers"


def _open_local(spec: ModelSpec, kind: str) -> Responder:
    from pydantic import ValidationError

    from stp.asking.chat import Chat, choose_chat
    from stp.asking.engine import DEFAULT_BATCH, EngineResponder
    from stp.campaign.models import locate_model
    from stp.campaign.sections import ModelConfig
    from stp.engines.checks import weights_hash
    from stp.formats import find_family, get_family
    from stp.formats.turn_end import find_turn_end
    from stp.tokenizers import load_tokenizer

    if spec.base_url is not None:
        raise ConfigError(f"a base URL needs the engine api, not {kind}")
    # Any name and family will do to find the folder; what they are is decided below.
    try:
        config = ModelConfig(
            path=spec.model, name="model", family="written-tags", revision=spec.revision
        )
    except ValidationError as error:  # No text: half a character.
        why = error.errors(include_url=False)[0]["msg"]
        raise ConfigError(f"model {spec.model!a}: {why}") from error
    folder = locate_model(config).folder
    name = "demo" if spec.model == "demo" else Path(spec.model).name or folder.resolve().name
    tokenizer = load_tokenizer(folder)
    if spec.family is None:
        found = find_family(name, tokenizer, folder)
        family = found.family
        if family is not None and not found.pattern:
            _LOG.warning("%s: %s (;family=NAME names another)", name, found.reason)
    else:
        family = None if spec.family == "none" else get_family(spec.family)
    engine, kind = _first_engine(spec, kind, folder)
    turn_end = find_turn_end(family, tokenizer)
    if not turn_end.ids:
        _LOG.warning(
            "nothing in %s says where an answer ends (no eos_token, no eos_token_id, no end of "
            "turn in the chat template): every answer will run to its token limit",
            folder,
        )

    def choose(settings: Settings) -> Chat:
        return choose_chat(
            tokenizer,
            family,
            thinking=settings.thinking,
            reasoning_effort=settings.reasoning_effort,
            turn_end=turn_end,
        )

    description: dict[str, str | int | float | None] = {
        "engine": kind,
        "model": name,
        "path": str(folder),
        "revision": spec.revision,
        "weights_hash": weights_hash(folder),
        "family": None if family is None else family.name,
        "thinking_off": None if family is None else family.off_switch or "an empty thinking",
    }
    batch = spec.batch or (4 * DEFAULT_BATCH if kind == "vllm" else DEFAULT_BATCH)
    return EngineResponder(engine, choose, description=description, batch=batch)
