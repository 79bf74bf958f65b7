"""The driver's memory does not grow with the campaign."""

import multiprocessing
import resource

from stp.campaign.run import SilentObserver, run_campaign
from tests.campaign.fakes import ScriptedEngine, write_questions

fork = multiprocessing.get_context("fork")


class _Counting(SilentObserver):
    def __init__(self):
        self.probes = 0

    def unit_finished(self, stage, unit, work):
        self.probes += work.samples if stage == "probe" else 0


def _measure(small, large, folder, result):
    """Put the peak after a small campaign, after a large one, and the probes of the large one."""
    for config, name in ((small, "small"), (large, "large")):
        observer = _Counting()
        run_campaign(
            config,
            folder / name,
            open_model=lambda name, path: ScriptedEngine(path),
            observer=observer,
        )
        result.put((observer.probes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def test_ten_times_the_probes_take_the_same_memory(configure, tmp_path):
    values = {"trajectories": 10, "unit_trajectories": 10, "questions": 4, "probes": 20}
    small = configure(benchmark=write_questions(tmp_path / "few", 4), **values)
    large = configure(benchmark=write_questions(tmp_path / "many", 40), **values)
    result = fork.Queue()
    # Forked, so that the peak before the campaigns is known and everything is imported.
    process = fork.Process(target=_measure, args=(small, large, tmp_path, result))
    process.start()
    (few, before), (many, after) = result.get(timeout=120), result.get(timeout=120)
    process.join()
    assert many > 7 * few > 0
    grown_bytes = (after - before) * 1024
    # All probes at once, as Python numbers, would be some 1 kB each.
    assert grown_bytes < 400 * many, f"{grown_bytes / many:.0f} bytes for each of {many} probes"
