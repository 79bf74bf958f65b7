"""docs/examples/paper.toml is the paper's campaign, and a dry run accepts it."""

import json
import shutil
from pathlib import Path

from data import get_benchmark
from stp.campaign import dry_run as module
from stp.campaign.config import load_config
from stp.campaign.dry_run import plan_campaign
from stp.engines.base import SamplingParameters
from stp.formats import family_for_model, get_family
from tests.campaign.fakes import ScriptedEngine
from tests.data.made import gpqa_rows, livecodebench_rows, write_csv, write_jsonl

PAPER = Path(__file__).parents[2] / "docs" / "examples" / "paper.toml"


def test_its_settings_are_the_papers():
    """Paper 002, section 3 and appendix A.1 and A.2."""
    config = load_config(PAPER)
    assert [model.name for model in config.models] == [
        "gpt-oss-20b",
        "Qwen3-4B-Thinking-2507",
        "Qwen3-30B-A3B-Thinking-2507",
        "DeepSeek-R1-Distill-Qwen-7B",
        "DeepSeek-R1-Distill-Qwen-14B",
        "DeepSeek-R1-Distill-Qwen-32B",
    ]
    counts = [get_benchmark(entry.name).expected_count for entry in config.benchmarks]
    assert sum(counts) == 963
    groups = {get_benchmark(entry.name).group for entry in config.benchmarks}
    assert groups == {"AIME", "MATH", "GPQA", "LCB"}
    assert all(entry.limit is None for entry in config.benchmarks)
    generation, probing = config.generation, config.probing
    assert (generation.mode, generation.trajectories) == ("thinking", 16)
    assert (generation.thinking_limit, generation.context_limit) == (32_768, 65_536)
    assert (probing.probes, probing.step_tokens, probing.answer_tokens) == (16, 256, 4096)
    assert config.seed == 20_260_721
    assert not config.sampling.model_dump(exclude_none=True)
    expected = {
        "gpt-oss": SamplingParameters(temperature=1.0, top_p=1.0),
        "qwen3-thinking": SamplingParameters(
            temperature=0.6, top_p=0.95, top_k=20, presence_penalty=1.5
        ),
        "deepseek-r1-distill-qwen": SamplingParameters(temperature=0.6, top_p=0.95),
    }
    for model in config.models:
        assert family_for_model(model.path).name == model.family
        assert get_family(model.family).sampling == expected[model.family]
    # The assumption that the file names.
    assert get_family("gpt-oss").template_options == {"reasoning_effort": "medium"}
    assert "reasoning effort" in PAPER.read_text() and '"medium"' in PAPER.read_text()


def test_a_dry_run_accepts_it(model_folder, tmp_path, monkeypatch):
    """The models' weights are not here: another model stands for each of the six."""
    contest = {"problem": "2 + 2?", "solution": "4"}
    for year in (2024, 2025, 2026):
        rows = [{"id": f"aime{year}-{n}", "answer": "4", **contest} for n in range(1, 31)]
        write_jsonl(tmp_path / f"aime{year}.jsonl", rows)
    rows = [
        {
            "problem": f"{n} + 2?", "solution": "\\boxed{4}", "answer": "4", "subject": "Algebra",
            "level": 1, "unique_id": f"test/algebra/{n}.json",
        }
        for n in range(500)
    ]  # fmt: skip
    write_jsonl(tmp_path / "math500.jsonl", rows)
    write_csv(tmp_path / "gpqa_diamond.csv", gpqa_rows())
    write_jsonl(tmp_path / "livecodebench.jsonl", livecodebench_rows())
    monkeypatch.setenv("STP_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_WARM_UP_TRAJECTORIES", 2)
    monkeypatch.setattr(module, "_WARM_UP_PROBES", 2)
    folder = shutil.copytree(model_folder, tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    settings["max_position_embeddings"] = 131_072
    (folder / "config.json").write_text(json.dumps(settings))
    config = load_config(PAPER)
    models = tuple(
        model.model_copy(update={"path": str(folder), "family": "demo"}) for model in config.models
    )
    plan = plan_campaign(
        config.model_copy(update={"models": models}),
        open_model=lambda name, path: ScriptedEngine(path, context=65_536),
        folder=tmp_path / "paper",
    )
    assert len(plan.cells) == 6 * 6
    assert sum(cell.record.questions for cell in plan.cells) == 6 * 963
    assert not any(cell.too_long_ids or cell.shortened_ids for cell in plan.cells)
    assert plan.total.samples > 92_448
    assert not (tmp_path / "paper").exists()
