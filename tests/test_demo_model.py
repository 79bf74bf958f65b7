"""The demo questions, the demo model's folder, and the script that trained it."""

import hashlib
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.demo import INSTRUCTION, KINDS, DemoProblem, demo_problems, demo_questions
from data.draws import StableDraws
from tests.effort import tries

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "data" / "demo_model"


# ------------------------------------------------------------------------------ questions


def naive_answer(prompt: str) -> int:
    """Answer a demo question from its text alone, by other means than ``DemoProblem``."""
    if match := re.fullmatch(r"What is ([\d +-]+)\?", prompt):
        return int(eval(match[1], {"__builtins__": {}}))
    if match := re.fullmatch(r"Which is (larger|smaller), (.+) or (.+)\?", prompt):
        sides = sorted(int(eval(side, {"__builtins__": {}})) for side in match.group(2, 3))
        return sides[1] if match[1] == "larger" else sides[0]
    if match := re.fullmatch(r"What is the (largest|smallest) of (.+)\?", prompt):
        ordered = sorted(int(number) for number in match[2].split(", "))
        return ordered[-1] if match[1] == "largest" else ordered[0]
    match = re.fullmatch(r"How many of (.+) are (even|odd|larger than (\d+))\?", prompt)
    assert match is not None, prompt
    total = 0
    for number in match[1].split(", "):
        if match[3]:
            total += int(number) > int(match[3])
        else:
            total += (number[-1] in "02468") == (match[2] == "even")
    return total


@given(seed=st.integers(0, 10**6), held_out=st.booleans())
@settings(max_examples=40, deadline=None)
def test_references_are_right(seed: int, held_out: bool) -> None:
    for question in demo_questions(10, seed, held_out):
        assert int(question.reference) == naive_answer(question.prompt)
        assert question.answer_kind == "math"


def test_questions_are_stable_over_releases() -> None:
    """The published figures belong to these questions: another list would be another benchmark."""
    questions = demo_questions(40, seed=1)
    digest = hashlib.sha256("\n".join(q.prompt for q in questions).encode()).hexdigest()
    assert digest == "9ae7a1986ac5550118355232a317d8cdca36839e89e9681f4e6034f31ae5a19e"
    assert demo_questions(12, seed=1) == questions[:12]


def test_questions_are_different_and_of_all_kinds() -> None:
    questions = demo_questions(400, seed=3)
    assert len({question.prompt for question in questions}) == 400
    assert len({question.id for question in questions}) == 400
    kinds = [question.id.split("-")[1] for question in questions]
    assert all(kinds.count(kind) >= 75 for kind in KINDS)
    assert demo_questions(40, seed=3) != demo_questions(40, seed=4)
    assert any(question.reference.startswith("-") for question in questions)


@pytest.mark.slow
def test_held_out_numbers_are_never_trained_on_in_any_order() -> None:
    def numbers(problem: DemoProblem) -> tuple[Any, ...]:
        if problem.kind == "difference":
            return (problem.kind, problem.numbers[0], *sorted(problem.numbers[1:]))
        sides = sorted([tuple(sorted(problem.numbers)), tuple(sorted(problem.others))])
        return (problem.kind, *sides)

    def some(held_out: bool) -> Iterator[DemoProblem]:
        return itertools.islice(demo_problems(5, held_out=held_out), 3_000)

    training = {numbers(problem) for problem in some(False)}
    held_out = {numbers(problem) for problem in some(True)}
    assert len(held_out) > 1_000
    assert not training & held_out
    shuffled = [
        DemoProblem(kind="sum", numbers=order) for order in itertools.permutations((1, 2, 3, 4, 5))
    ]
    assert len({problem.held_out for problem in shuffled}) == 1


# ---------------------------------------------------------------------------- model folder


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODEL)


@pytest.fixture(scope="module")
def model() -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()


def prompt_text(tokenizer: Any, question: str) -> str:
    message = {"role": "user", "content": f"{question}\n{INSTRUCTION}"}
    return tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True)


def test_folder_is_a_plain_qwen3_of_at_most_four_megabytes(model: Any) -> None:
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert model.config.vocab_size > 300
    assert (MODEL / "model.safetensors").stat().st_size <= 4_000_000
    assert not list(MODEL.glob("*.py"))


def test_end_of_turn_ends_generation(tokenizer: Any, model: Any) -> None:
    assert tokenizer.eos_token == "<|im_end|>"
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)
    assert len(tokenizer) == model.config.vocab_size


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=tries(300, 100), deadline=None)
def test_any_text_survives_encoding(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_digits_and_markers_are_single_tokens(tokenizer: Any) -> None:
    single = [*"0123456789", "<think>", "</think>", "<|im_start|>", "<|im_end|>"]
    single += ["\n\n", ".\n\n", "?\n\n", ":\n\n", " + ", " = ", "\\boxed{", "}", "."]
    for text in single:
        assert len(tokenizer.encode(text, add_special_tokens=False)) == 1, text
    assert len(tokenizer.encode("2026", add_special_tokens=False)) == 4


def test_several_tokens_hold_a_double_newline(tokenizer: Any) -> None:
    forms = {tokenizer.decode([index]) for index in range(len(tokenizer))}
    double = {form for form in forms if "\n\n" in form}
    assert {"\n\n", ".\n\n", "?\n\n", ":\n\n"} <= double


def test_chat_template_opens_thinking(tokenizer: Any) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 4 + 7?"},
    ]
    opened = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert opened == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 4 + 7?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n"
    )
    closed = tokenizer.apply_chat_template(messages, tokenize=False)
    assert "<think>" not in closed


@pytest.mark.slow
def test_greedy_generation_thinks_and_answers(tokenizer: Any, model: Any) -> None:
    import torch

    right = 0
    questions = demo_questions(10, seed=11)
    for question in questions:
        inputs = tokenizer(
            prompt_text(tokenizer, question.prompt), return_tensors="pt", add_special_tokens=False
        )
        with torch.inference_mode():
            output = model.generate(**inputs, max_new_tokens=500, do_sample=False)[0]
        text = tokenizer.decode(output[inputs.input_ids.shape[1] :])
        thinking, marker, answer = text.partition("</think>")
        assert marker, text
        assert "The answer is" in thinking
        box = re.fullmatch(r"\n\n\\boxed\{(-?\d+)\}<\|im_end\|>", answer)
        assert box, answer
        right += box[1] == question.reference
    assert right >= 8


# -------------------------------------------------------------------------------- trainer


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import train_demo_model

    return train_demo_model


def test_shipped_tokenizer_is_the_trainers(trainer: Any) -> None:
    built = trainer.build_tokenizer().backend_tokenizer.to_str(pretty=True)
    assert built == (MODEL / "tokenizer.json").read_text(encoding="utf-8")


def test_traces_are_right_until_they_slip(trainer: Any) -> None:
    """Every line before the first check is true, and the steps' beliefs follow the text."""
    slipped = 0
    for index, problem in enumerate(itertools.islice(demo_problems(2, held_out=False), 500)):
        steps = trainer.write_trace(problem, StableDraws("test", index), trainer.TraceRecipe())
        texts = [step.text for step in steps]
        result = texts.index(f"The answer is {problem.answer}.\n\n")
        for text in texts[1:result]:
            if sum_line := re.fullmatch(r"(-?\d+ [+-] \d+) = (-?\d+)\.\n\n", text):
                assert eval(sum_line[1], {"__builtins__": {}}) == int(sum_line[2])
            elif order := re.fullmatch(r"\d+ [<>] \d+\.\n\n", text):
                assert eval(order[0], {"__builtins__": {}})
        for step in steps:
            if stated := re.match(
                r"(?:So it is|The final answer is|Hmm, maybe it is) (-?\d+)", step.text
            ):
                assert int(stated[1]) == step.belief
        slipped += steps[-1].belief != problem.answer
        assert all("\n\n" in text for text in texts[:-1])
        assert "\n\n" not in texts[-1]
    assert 20 <= slipped <= 150


def test_training_prompts_are_the_templates(trainer: Any, tokenizer: Any) -> None:
    writer = trainer.ExampleWriter(tokenizer, trainer.TraceRecipe())
    problem = next(demo_problems(1))
    expected = tokenizer.encode(prompt_text(tokenizer, problem.prompt), add_special_tokens=False)
    assert writer.prompt_ids(problem) == expected
    example = writer.write(problem, StableDraws("test"))
    trunk = [token for token, branch in zip(example.ids, example.branch, strict=True) if not branch]
    assert trunk[: len(expected)] == expected
    assert not any(example.learned[: len(expected)])
    assert tokenizer.encode(tokenizer.decode(trunk), add_special_tokens=False) == trunk


def test_branches_see_their_own_prefix_alone(trainer: Any, tokenizer: Any, model: Any) -> None:
    """A branch's logits in a packed example equal those of its prefix run by itself."""
    import torch

    writer = trainer.ExampleWriter(tokenizer, trainer.TraceRecipe(guess=1.0))
    problems = itertools.islice(demo_problems(8), 3)
    examples = [writer.write(p, StableDraws("b", i)) for i, p in enumerate(problems)]
    batch = trainer.collate(examples, tokenizer.pad_token_id)
    with torch.inference_mode():
        packed = model(
            input_ids=batch.ids, attention_mask=batch.mask, position_ids=batch.positions
        ).logits
        for row, example in enumerate(examples):
            for branch in range(1, max(example.branch) + 1):
                places = [i for i, number in enumerate(example.branch) if number == branch]
                cut = example.cut[places[0]]
                alone = example.ids[:cut] + [example.ids[i] for i in places]
                logits = model(input_ids=torch.tensor([alone])).logits[0, cut:]
                torch.testing.assert_close(packed[row, places], logits, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
def test_training_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for name in ("first", "second"):
        command = [sys.executable, str(ROOT / "scripts" / "train_demo_model.py"), "--steps", "3"]
        command += ["--batch-size", "2", "--out", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        digests.add(
            hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).hexdigest()
        )
    assert len(digests) == 1
