"""What is wrong is said in one line, before a model is loaded."""

from pathlib import Path

import pytest

from baselines.registry import BUILT_IN
from data.errors import MisuseError
from evaluator.live.policy import find_setting, make_policy
from evaluator.live.setup import Wanted, check_same_model, get_ready, live_tasks
from stp.campaign.models import locate_model
from stp.campaign.sections import EngineConfig, ModelConfig

DEMO = ModelConfig(path="demo")


def refused(said, **wanted):
    with pytest.raises(MisuseError) as caught:
        get_ready(Wanted(**{"model": DEMO, **wanted}))
    text = str(caught.value)
    assert said in text
    assert "\n" not in text
    return text


def test_unknown_method():
    assert "deer" in refused("no method 'dear'", method="dear", setting="0.9")


def test_a_setting_outside_the_grid_or_missing():
    assert "0.95" in refused("is not a setting", method="deer", setting="0.951")
    refused("name a setting", method="deer")
    refused("needs a method", setting="0.95")


def test_a_method_that_learns_needs_a_release():
    for method in ("hidden_probe", "think_switcher", "predictive_scheduling"):
        refused("--release", method=method, setting="0.5")


def test_engines_that_do_not_show_what_a_method_needs():
    server = EngineConfig(name="server", options={"url": "http://127.0.0.1:1"})
    refused("shows no signals", method="deer", setting="0.95", engine=server)


def test_unknown_models():
    refused("no such folder", model=ModelConfig(path="no-such-model"))


def test_settings_are_found_by_their_text():
    assert find_setting("m", (1, 2.5, (2, 64), "k = 0"), "2.50") == 2.5
    assert find_setting("m", (1, 2.5, (2, 64), "k = 0"), "[2, 64]") == (2, 64)
    assert find_setting("m", (1, 2.5, (2, 64), "k = 0"), "k = 0") == "k = 0"
    assert find_setting("m", ("always",), None) == "always"


def test_bounds_of_a_setting_are_places_of_the_grid():
    policy = make_policy("deer", "0.95", None)
    some = policy.between("0.9", "0.99")
    assert some == tuple(s for s in policy.settings if 0.9 <= s <= 0.99)
    assert policy.between("0.99", "0.9") == some
    for bounds, said in ((("0.97", "0.99"), "0.95 does not lie"), (("0.9", "x"), "'x' is no")):
        with pytest.raises(MisuseError, match=said):
            policy.between(*bounds)


@pytest.mark.parametrize("method", ["deer", "dynasor", "think_brake", "never_think"])
def test_methods_that_learn_nothing_need_no_release(method):
    settings = make_policy(method, _first(method), None).settings
    assert len(settings) >= 1


def _first(method):
    from baselines.registry import find_method

    return str(find_method(method).make().settings()[0])


def test_all_methods_are_refused_or_made():
    for method in BUILT_IN:
        try:
            make_policy(method, _first(method), None).close()
        except MisuseError as error:
            assert "--release" in str(error)


def test_without_questions_nothing_begins():
    ready = get_ready(Wanted(model=DEMO))
    with pytest.raises(MisuseError, match="no questions"):
        live_tasks(ready, ())


class FakeRelease:
    folder = Path("release")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"family": "qwen3"}, "family qwen3"),
        ({"tokenizer_hash": "0"}, "another tokenizer"),
        ({"weights_hash": "0"}, "another weights"),
    ],
)
def test_another_model_than_the_releases(changed, said):
    from stp.campaign.models import record_model

    model = locate_model(DEMO)
    record = record_model(model, context_limit=4096)
    entry = {
        "name": record.name,
        "weights_hash": record.weights_hash,
        "tokenizer_hash": record.tokenizer_hash,
        "family": "demo",
    }
    check_same_model(FakeRelease(), {"models": [entry]}, model)
    with pytest.raises(MisuseError, match=said):
        check_same_model(FakeRelease(), {"models": [{**entry, **changed}]}, model)
