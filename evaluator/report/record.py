"""What a campaign was asked to do and what it ran on, in words."""

from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import Manifest

Pairs = tuple[tuple[str, str], ...]


def _probes_text(config: CampaignConfig) -> str:
    probing = config.probing
    if probing.plan == "uniform":
        return f"{probing.probes:,}"
    return f"{probing.first_probes:,}; up to {probing.probes:,} where they tell most"


def settings_of(config: CampaignConfig, manifest: Manifest) -> Pairs:
    """Return what a campaign was asked to do, as (name, value) pairs in reading order."""
    questions = {record.benchmark: record.questions for record in manifest.cells}
    sampling = {k: v for k, v in config.sampling.model_dump().items() if v is not None}
    own = ", ".join(f"{key} {value}" for key, value in sampling.items())
    text = config.probing.answer_opening
    opening = (("Opening of a probe's answer", text),) if text else ()
    return (
        ("Models", ", ".join(model.name for model in config.models)),
        ("Wording of the prompts", config.prompts.wording.label),
        ("Benchmarks", ", ".join(f"{name} ({n} questions)" for name, n in questions.items())),
        ("Trajectories per question", f"{config.generation.trajectories:,}"),
        ("Probes per position", _probes_text(config)),
        ("Target length of a step, b", f"{config.probing.step_tokens:,} tokens"),
        ("Thinking limit", f"{config.generation.thinking_limit:,} tokens"),
        ("Context limit", f"{config.generation.context_limit:,} tokens"),
        ("Limit of an original answer", f"{config.generation.answer_tokens:,} tokens"),
        ("Limit of a probe's answer", f"{config.probing.answer_tokens:,} tokens"),
        *opening,
        ("Sampling", own or "as the model's family recommends"),
        ("Seed", str(config.seed)),
    )


def provenance_of(manifest: Manifest) -> Pairs:
    """Return what a campaign ran on, as (name, value) pairs in reading order."""
    pairs = [("Started", manifest.created), ("Settings hash", manifest.config_hash)]
    for model in manifest.models:
        engine = ", ".join(f"{key} {value}" for key, value in model.engine.items() if value)
        parts = [
            f"revision {model.revision}" if model.revision else "",
            f"weights {model.weights_hash}",
            f"tokenizer {model.tokenizer_hash}",
            engine,
        ]
        pairs.append((model.name, "; ".join(part for part in parts if part)))
    pairs += [
        (f"Stage {name}", f"{stage.samples:,} samples, {stage.seconds:,.0f} s")
        for name, stage in manifest.stages.items()
    ]
    pairs += [
        (
            f"References of {record.benchmark} for {record.model}",
            f"{len(mending.changed):,} changed {mending.at} by {mending.file} ({mending.sha256})",
        )
        for record in manifest.cells
        for mending in record.mendings
    ]
    if manifest.checker_version:
        pairs.append(("Answer checker", f"version {manifest.checker_version}"))
    pairs += [
        ("Packages", ", ".join(f"{name} {v}" for name, v in manifest.packages.items())),
        ("Environment", ", ".join(f"{key} {value}" for key, value in manifest.environment.items())),
    ]
    return tuple(pairs)
