"""Options that several commands of ``stp optimal`` have, and how their texts are read."""

from typing import Annotated

import typer

SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Responses to each question.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Most questions of each benchmark."),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=1, help="Most tokens of a response.")
]
ThinkingTokens = Annotated[
    int | None, typer.Option("--thinking-tokens", min=0, help="Most thinking tokens.")
]
Temperature = Annotated[float, typer.Option("--temperature", help="Temperature of the sampling.")]
TMax = Annotated[
    int, typer.Option("--t-max", min=1, help="Largest threshold of AUC OAA, in thinking tokens.")
]
JudgeOption = Annotated[
    str | None, typer.Option("--judge", help="Model that judges answers in words; as MODEL.")
]
JudgeRepeats = Annotated[
    int, typer.Option("--judge-repeats", min=1, help="Votes on each answer; agreement is reported.")
]
CampaignsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--campaign", help="A campaign on the same questions: what stopping could win back."
    ),
]
AllowUndecided = Annotated[
    bool, typer.Option("--allow-undecided", help="Leave out what the judge did not decide.")
]


def words(text: str) -> tuple[str, ...]:
    """Return comma-separated words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
