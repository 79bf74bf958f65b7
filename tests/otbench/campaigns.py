"""Synthetic campaigns in folders, with signals of known structure beside their curves."""

import numpy as np

from evaluator.otbench import release as release_module
from evaluator.otbench.release import write_release
from evaluator.simulation.store import write_campaign
from evaluator.simulation.worlds import Population, SyntheticBenchmark, SyntheticModel, make_world
from stp.campaign import load_curves
from stp.signals import Signals

WIDTH = 6


def population(*, models=2, questions=(14, 10), trajectories=3, names=("AIME", "MATH")):
    return Population(
        models=tuple(
            SyntheticModel(name=f"model-{i}", ability=1.0 - 0.3 * i, verbosity=1.0)
            for i in range(models)
        ),
        benchmarks=tuple(
            SyntheticBenchmark(
                name=name, questions=count, difficulty=0.3, spread=1.0, guess=0.05, tokens=900
            )
            for name, count in zip(names, questions, strict=True)
        ),
        trajectories=trajectories,
        probes=4,
        step_tokens=128,
        thinking_limit=4096,
    )


def campaign(folder, *, seed=1, **changes):
    """Write a campaign and return its URL."""
    people = population(**changes)
    write_campaign(make_world(people, seed), people, folder, questions_per_unit=5)
    return str(folder)


def signals_of(curves):
    """Return signals in which the truth can be read, the same for the same curves."""
    rng = np.random.default_rng(curves.positions)
    rate = curves.correct / curves.probes
    pairs = np.unique(np.stack([curves.model, curves.question]), axis=1)
    states = rng.normal(size=(curves.positions, WIDTH))
    states[:, 0] = rate + 0.1 * states[:, 0]
    return Signals(
        trajectory_offsets=curves.trajectory_offsets,
        end_logprob=np.log(0.02 + 0.9 * rate),
        other_logprob=np.log(0.95 - 0.9 * rate),
        other_id=np.zeros(curves.positions, np.int32),
        entropy=1.0 - 0.9 * rate,
        end_entropy=0.5 - 0.4 * rate,
        answer_entropy=0.6 - 0.4 * rate,
        trial_logprob=-0.5 + 0.49 * rate,
        trial_probability=0.6 + 0.39 * rate,
        trial_tokens=np.full(curves.positions, 3, np.int32),
        hidden={2: states.astype(np.float16), 5: states[:, ::-1].astype(np.float16)},
        prompt_model=pairs[0],
        prompt_question=pairs[1],
        prompt_hidden={
            2: rng.normal(size=(pairs.shape[1], WIDTH)).astype(np.float16),
            5: np.stack([pairs[1] % 5, *rng.normal(size=(WIDTH - 1, pairs.shape[1]))], axis=1),
        },
    )


def with_signals(monkeypatch):
    """Let campaigns written here have signals, without a model that would read them."""

    def read(item, model):
        curves = load_curves(item.store.url)
        return signals_of(curves.select(curves.model == curves.model_names.index(model)))

    monkeypatch.setattr(release_module, "_has_signals", lambda item: True)
    monkeypatch.setattr(release_module, "_signals_of", read)


def released(folder, url, **changes):
    """Write and return a release's folder."""
    write_release([url], folder, **changes)
    return folder
