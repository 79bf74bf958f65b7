"""The command line: parses, calls, prints. Everything heavy is imported inside the commands.

The first help is written here: a list of names and lines needs no command-line library, which takes
five times as long to load as Python takes to start.
"""

from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo", "Probe the demo model on 40 questions and report what it finds."),
    "run": ("campaigns", "Run a campaign, or continue one that was stopped."),
    "status": ("campaigns", "Show how far a campaign is: done, rate, time left, prefill."),
    "grade": ("campaigns", "Grade a campaign's answers, without a model."),
    "report": ("report", "Write a campaign's report: an HTML page and figures."),
    "explore": (
        "explore",
        "Look at campaigns, releases and runs in a browser, or as files.",
    ),
    "analyze": ("analyze", "Write all tables and figures of campaigns; say what was found."),
    "probes": ("probes", "Compare two campaigns that probed the same trajectories."),
    "signals": (
        "signals",
        "Read signals for termination methods at every step.",
    ),
    "merge": ("merge", "Put the parts of a campaign together, checked."),
    "release": ("release", "Freeze campaigns into a release, for `stp otbench`."),
    "show": ("showing", "Show a campaign, or its verdicts, as text."),
    "otbench": ("otbench", "Measure termination methods on a release."),
    "think": ("think", "LLMThinkBench: accuracy and length on arithmetic, the O-Score."),
    "optimal": ("optimal", "OptimalThinkingBench: over- and underthinking in one score."),
    "live": ("live", "Run a termination method live; compare, choose a setting."),
    "serve": (
        "serve",
        "Serve a model by chat completions; a method stops its thinking.",
    ),
    "leaderboard": (
        "leaderboard",
        "Boards of methods and models as a site; check, add submissions.",
    ),
    "benchmarks": ("benchmarks", "The benchmarks that there are."),
    "families": (
        "families",
        "List model families, or say which one a model gets, and why.",
    ),
}
"""For every command the module of :mod:`stp.cli` that registers it, and the first line of its help,
in the order of ``stp --help``."""


def first_help() -> str:
    """Return what ``stp --help`` writes."""
    width = max(map(len, COMMANDS)) + 2
    lines = "\n".join(f"  {name:{width}}{line}" for name, (_, line) in COMMANDS.items())
    return f"""\
Usage: stp [OPTIONS] COMMAND [ARGS]...

  Measure how much of a reasoning model's thinking is wasted or harmful, and
  how much an ideal stopping rule could save.

Options:
  --version   Print the version.
  --debug     Show the full traceback of an error.
  -h, --help  Show this message and exit.

Commands:
{lines}
"""
