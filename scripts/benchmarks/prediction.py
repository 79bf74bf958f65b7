r"""What `stp run --dry-run` says of a campaign's time, against the campaign itself right after.

Both in seconds of this process's work (user and system), not of the clock on the wall: another
process that takes the machine for a while makes neither longer. With one thread and an idle
machine the two are the same. The dry run's own figure, without its warm-up, is compared with
generation and probing, from the first request to the last unit written; opening the model is in
neither.

    PYTHONPATH=. .venv/bin/python scripts/benchmarks/prediction.py \
        data/demo_campaign.toml --limit 10
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from stp.campaign.config import CampaignConfig, load_config
from stp.campaign.dry_run import plan_campaign
from stp.campaign.run import SilentObserver, configured_engine, run_campaign
from stp.campaign.store import Store
from stp.campaign.units import Stage
from stp.engines.base import Engine


class Opened:
    """Opens engines as the campaign says, and remembers how long that took."""

    def __init__(self, config: CampaignConfig) -> None:
        self._open = configured_engine(config)
        self.opening_seconds = 0.0

    def __call__(self, name: str, folder: Path) -> Engine:
        """Open one, and take the time."""
        begin = time.process_time()
        engine = self._open(name, folder)
        self.opening_seconds += time.process_time() - begin
        return engine


class Begun(SilentObserver):
    """Remembers when the first stage began: what is before prepares the questions."""

    def __init__(self) -> None:
        self.at: float | None = None

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Take the time."""
        if self.at is None:
            self.at = time.process_time()


def measure(config: CampaignConfig) -> dict[str, Any]:
    """Return predicted and real seconds of a campaign."""
    plan = plan_campaign(config, open_model=configured_engine(config), clock=time.process_time)
    seconds, tail = plan.seconds(1)
    opened, begun = Opened(config), Begun()
    wall = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run_campaign(
            config, folder, stages=("generate", "probe"), open_model=opened, observer=begun
        )
        assert begun.at is not None
        real = time.process_time() - begun.at - opened.opening_seconds
        stages = Store(folder).read_manifest().stages
    return {
        "predicted_seconds": round(seconds, 1),
        "predicted_tail_seconds": round(tail, 1),
        "at_the_warm_ups_pace": round(plan.total.seconds, 1),
        "predicted_tokens": plan.total.tokens,
        "predicted_generate_tokens": sum(cell.generate.tokens for cell in plan.cells),
        "real_seconds": round(real, 1),
        "real_tokens": sum(stages[stage].generated_tokens for stage in ("generate", "probe")),
        "real_generate_tokens": stages["generate"].generated_tokens,
        "predicted_of_real": round(seconds / real, 3),
        "predicted_tokens_of_real": round(
            plan.total.tokens
            / max(1, sum(stages[stage].generated_tokens for stage in ("generate", "probe"))),
            3,
        ),
        "real_wall_seconds": round(time.monotonic() - wall, 1),
    }


def main() -> None:
    """Print a line of JSON for each time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--limit", type=int, help="questions of each benchmark")
    parser.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args()
    config = load_config(arguments.campaign)
    if arguments.limit is not None:
        benchmarks = tuple(
            entry.model_copy(update={"limit": arguments.limit}) for entry in config.benchmarks
        )
        config = config.model_copy(update={"benchmarks": benchmarks})
    for _ in range(arguments.times):
        print(json.dumps(measure(config)), flush=True)


if __name__ == "__main__":
    main()
