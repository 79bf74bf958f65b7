"""Answers without thinking: prompts as ids, and a campaign whose curves are points."""

import numpy as np
import pytest

from data import get_benchmark
from data.errors import ConfigError, EngineError, MisuseError
from data.prompts import DIRECT_REQUEST
from evaluator.analysis.overthinking import per_trajectory
from stp.campaign import load_curves, run_campaign, signals_campaign
from stp.campaign.config import parse_config
from stp.campaign.direct import unthinking_prompt_ids
from stp.campaign.reader import CampaignReader
from stp.engines.base import RequestError
from stp.formats import ThinkingFormat, get_family
from stp.tokenizers import load_tokenizer
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import rows_of, table_rows


def with_mode(configure, mode: str):
    config = configure()
    text = config.to_toml().replace('mode = "thinking"', f'mode = "{mode}"')
    return parse_config(text.replace("\nprobes = 4\n", "\n"), source="test.toml")


@pytest.mark.parametrize("mode", ["direct", "thinking_off"])
def test_a_campaign_without_thinking_is_a_point_per_trajectory(mode, configure, tmp_path):
    config = with_mode(configure, mode)
    engines = []

    def opener(name, folder):
        engines.append(ScriptedEngine(folder))
        return engines[-1]

    assert config.probing.probes == 1
    assert run_campaign(config, tmp_path / "c", open_model=opener).finished
    curves = load_curves(tmp_path / "c")
    assert curves.trajectories == curves.positions == 30
    assert (curves.tokens == 0).all() and curves.probes == 1
    # The probe is the trajectory's own answer: as many samples as trajectories.
    assert np.array_equal(curves.correct, curves.original_correct)
    assert sum(engine.samples for engine in engines) == 30
    assert 0 < curves.correct.sum() < 30
    frame = per_trajectory(curves)
    assert (frame["overthinking_ratio"] == 0).all()
    rows = table_rows(tmp_path / "c", "trajectories")
    assert {row["thinking_finish"] for row in rows} == {"off"}
    assert all(row["thinking_ids"] == [] for row in rows)
    assert len({row["seed"] for row in rows}) == 30
    with pytest.raises(MisuseError, match="do not think"):
        signals_campaign(tmp_path / "c")


def test_a_request_that_keeps_failing_is_named(configure, tmp_path):
    class Failing(ScriptedEngine):
        def work(self, trees):
            raise RequestError("no such request", tree=len(trees) - 1)

    with pytest.raises(EngineError, match="question sevens-3, trajectory 0, 1: no such request"):
        run_campaign(
            with_mode(configure, "direct"),
            tmp_path / "c",
            open_model=lambda name, path: Failing(path),
            attempts=1,
        )


def test_a_killed_campaign_goes_on_to_the_same_rows(configure, tmp_path):
    config = with_mode(configure, "direct")

    def run(folder, **options):
        return run_campaign(
            config, folder, open_model=lambda name, path: ScriptedEngine(path), **options
        )

    run(tmp_path / "whole")
    run(tmp_path / "stages", stages=("generate",))
    run(tmp_path / "stages", stages=("probe",))
    run(tmp_path / "stages")
    assert rows_of(tmp_path / "stages") == rows_of(tmp_path / "whole")


def test_the_prompt_shown_is_the_one_sent(configure, tmp_path):
    config = with_mode(configure, "direct")
    run_campaign(config, tmp_path / "c", open_model=lambda name, path: ScriptedEngine(path))
    reader = CampaignReader(tmp_path / "c")
    name = next(reader.summaries()).question_id
    text = reader.prefix(reader.trajectory(name), 0).text
    assert DIRECT_REQUEST in text and "one step at a time" not in text
    assert text.endswith("<|im_start|>assistant\n<think>\n</think>\n\n")
    with_thinking = configure()
    run_campaign(with_thinking, tmp_path / "t", open_model=lambda name, path: ScriptedEngine(path))
    other = CampaignReader(tmp_path / "t")
    assert "one step at a time" in other.prefix(other.trajectory(name), 0).text


def test_thinking_off_keeps_the_instruction_and_closes_thinking(model_folder, sevens):
    format = ThinkingFormat(get_family("demo"), load_tokenizer(model_folder))
    benchmark = get_benchmark(str(sevens))
    (question,) = benchmark.load(limit=1)
    off = unthinking_prompt_ids("thinking_off", format, benchmark, question)
    assert off == format.prompt_ids(question.prompt, benchmark.instruction) + format.close_ids


def test_a_template_that_turns_thinking_off_is_asked_to(model_folder):
    template = (
        "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
        "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    )
    family = get_family("demo").model_copy(
        update={
            "chat_template": template,
            "template_options": {"enable_thinking": True},
            "thinking_off_options": {"enable_thinking": False},
        }
    )
    format = ThinkingFormat(family, load_tokenizer(model_folder))
    text = format.decode(format.answer_prompt_ids("Why?"))
    assert text.endswith("assistant\n<think>\n\n</think>\n\n") and text.count("</think>") == 1
    assert format.decode(format.prompt_ids("Why?")).endswith("assistant\n<think>\n")


def test_a_model_that_thinks_on_request_is_not_asked(model_folder):
    family = get_family("written-tags").model_copy(update={"answer_stops": ("<|im_end|>",)})
    format = ThinkingFormat(family, load_tokenizer(model_folder))
    text = format.decode(format.answer_prompt_ids("Why?", "Be short."))
    assert "think" not in text and text.endswith(
        "Why?\n\nBe short.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_prompt_without_room_for_the_whole_answer_is_marked(configure, tmp_path):
    config = with_mode(configure, "direct")
    fits = {}
    for context in (600, 130, 100):
        settings = config.model_copy(
            update={"generation": config.generation.model_copy(update={"context_limit": context})}
        )
        folder = tmp_path / str(context)
        run_campaign(settings, folder, open_model=lambda name, path: ScriptedEngine(path))
        fits[context] = {row["fit"] for row in table_rows(folder, "questions")}
        prompt = len(table_rows(folder, "questions")[0]["prompt_ids"])
        assert prompt == 120
    assert fits == {600: {"whole"}, 130: {"shortened"}, 100: {"too_long"}}


def test_more_probes_than_answers_are_refused(configure):
    text = configure().to_toml().replace('mode = "thinking"', 'mode = "direct"')
    with pytest.raises(ConfigError, match=r"probing.probes is 4.*leave it out"):
        parse_config(text, source="test.toml")
    with pytest.raises(ConfigError, match=r"generation\.mode"):
        parse_config(text.replace("direct", "silent"), source="test.toml")


def test_a_campaign_from_before_modes_has_the_same_settings(configure):
    settings = configure().settings()
    assert "generation.mode" not in settings
    assert with_mode(configure, "direct").settings()["generation.mode"] == "direct"
