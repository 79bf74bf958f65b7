"""What the options of ``stp think run`` mean: lists of values, and the runs of a study."""

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from data.errors import ConfigError
from data.hints import did_you_mean
from data.prompts import STYLES, Prompts
from data.puzzles import puzzle_names
from data.tasks import TASK_LABELS, task_names
from evaluator.thinkbench.config import Style, ThinkConfig
from stp.asking import ReasoningEffort, Settings, Thinking


def configurations(
    *,
    tasks: str,
    samples: int,
    folds: int,
    seed: int,
    sizes: str | None,
    task_sizes: Sequence[str],
    low: int,
    high: int,
    styles: str,
    max_tokens: str,
    thinking_tokens: str,
    effort: str,
    thinking: str,
    tools: str,
    temperature: str,
    top_p: str,
    prompts: Prompts,
) -> list[tuple[str, ThinkConfig]]:
    """Return every combination of the values given, with a label that says what differs.

    Raises
    ------
    data.errors.ConfigError
        If a value cannot be used.
    """
    choices: list[tuple[str, list[tuple[str, Any]]]] = [
        ("style", [(value, value) for value in _words("--style", styles, STYLES)]),
        ("max_tokens", _counts("--max-tokens", max_tokens, "cap", least=1)),
        ("thinking_tokens", _counts("--thinking-tokens", thinking_tokens, "budget", least=0)),
        ("reasoning_effort", _efforts(effort)),
        (
            "thinking",
            [
                (f"thinking {value}", value)
                for value in _words("--thinking", thinking, get_args(Thinking))
            ],
        ),
        ("tools", _toolsets(tools)),
    ]
    found = []
    for combination in itertools.product(*(values for _, values in choices)):
        chosen = {name: value for (name, _), (_, value) in zip(choices, combination, strict=True)}
        label = " ".join(
            shown
            for (_, values), (shown, _) in zip(choices, combination, strict=True)
            if len(values) > 1
        )
        style: Style = chosen.pop("style")
        config = ThinkConfig(
            tasks=_tasks(tasks),
            samples=samples,
            folds=folds,
            seed=seed,
            low=low,
            high=high,
            sizes=_sizes("--sizes", sizes) if sizes is not None else None,
            task_sizes=_task_sizes(task_sizes),
            style=style,
            prompts=prompts,
            settings=Settings(
                temperature=_rate("--temperature", temperature),
                top_p=_rate("--top-p", top_p),
                **chosen,
            ),
        )
        found.append((label, config))
    return found


def named_values(option: str, given: Sequence[str]) -> dict[str, Any]:
    """Return values by name from ``NAME=VALUE``; a value is JSON, or else a text.

    Examples
    --------
    >>> named_values("--option", ["threads=2", "dtype=float32"])
    {'threads': 2, 'dtype': 'float32'}
    """
    values: dict[str, Any] = {}
    for entry in given:
        name, equals, text = entry.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{option} {entry!r}: write NAME=VALUE")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def folder_name(text: str) -> str:
    """Return a name for a folder from a run's title.

    Examples
    --------
    >>> folder_name("Qwen/Qwen3-8B cap 1024")
    'Qwen-Qwen3-8B-cap-1024'
    """
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-.") or "run"


def _split(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _words(option: str, text: str, known: Iterable[str]) -> list[str]:
    known = list(known)
    values = _split(text)
    for value in values:
        if value not in known:
            raise ConfigError(
                f"{option} {value!r}: there is none{did_you_mean(value, known)} (there are "
                f"{', '.join(known)})"
            )
    if not values:
        raise ConfigError(f"{option} is empty; there are {', '.join(known)}")
    return values


def _counts(option: str, text: str, label: str, *, least: int) -> list[tuple[str, int | None]]:
    found: list[tuple[str, int | None]] = []
    for value in _split(text):
        if value == "none":
            found.append((f"no {label}", None))
        elif value.isascii() and value.isdigit() and int(value) >= least:
            found.append((f"{label} {int(value)}", int(value)))
        else:
            raise ConfigError(f"{option} {value!r}: write whole numbers from {least}, or none")
    if not found:
        raise ConfigError(f"{option} is empty; write whole numbers, or none")
    return found


def _rate(option: str, text: str) -> float | None:
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text!r}: write a number, or none") from error


def _efforts(text: str) -> list[tuple[str, str | None]]:
    # The word none means no setting here; an API's own "none" is --thinking off.
    known = ("none", *(value for value in get_args(ReasoningEffort) if value != "none"))
    return [
        ("own effort", None) if value == "none" else (f"effort {value}", value)
        for value in _words("--effort", text, known)
    ]


def _toolsets(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        ("no tools", ()) if value == "none" else (f"tools {value}", tuple(value.split("+")))
        for value in _split(text) or ["none"]
    ]


def _tasks(text: str) -> tuple[str, ...]:
    # As tables call them, too.
    labels = {label: (name,) for name, label in TASK_LABELS.items()}
    groups = {"all": task_names(), "puzzles": puzzle_names(), **labels}
    names: list[str] = []
    for part in _split(text):
        names += groups.get(part, (part.replace("-", "_"),))
    return tuple(names)


def _sizes(option: str, text: str) -> tuple[int, ...]:
    parts = _split(text)
    if not parts or not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise ConfigError(f"{option} {text!r}: write whole numbers from 1, comma-separated")
    return tuple(int(part) for part in parts)


def _task_sizes(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found = {}
    for entry in given:
        task, equals, text = entry.partition("=")
        if not equals:
            raise ConfigError(f"--task-sizes {entry!r}: write TASK=8,16")
        found[task.strip().replace("-", "_")] = _sizes("--task-sizes", text)
    return found
