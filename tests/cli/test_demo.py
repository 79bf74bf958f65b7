"""What ``stp demo`` says when its campaign is done."""

from pathlib import Path
from types import SimpleNamespace

from evaluator.analysis.headline import StrategyFinding
from oracle import STRATEGIES
from stp.cli import demo


def test_results_fit_a_terminal_of_80_columns(campaign, capsys):
    findings = tuple(
        StrategyFinding(
            strategy=strategy,
            equal_tokens_fraction=fraction,
            best_accuracy=0.9931,
            best_tokens_fraction=0.5,
        )
        for strategy, fraction in zip(STRATEGIES, (1.0, 0.9494, 0.269), strict=True)
    )
    report = SimpleNamespace(headline=SimpleNamespace(strategies=findings), page=Path("/r.html"))
    demo._say_what_was_found(campaign, report)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for strategy, percentage in zip(STRATEGIES, ("100.0", " 94.9", " 26.9"), strict=True):
        name = f"frontier, {strategy.replace('_', ' ')}"
        (place,) = (number for number, line in enumerate(lines) if line.startswith(name))
        assert lines[place] == f"{name:<36}  0.993 at best"
        equal = f"{demo._EQUAL:<36}  {percentage} % of its tokens"
        assert lines[place + 1] == equal
    assert lines[-1] == f"report: {report.page}"
