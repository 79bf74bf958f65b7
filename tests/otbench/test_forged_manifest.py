"""Releases whose manifests were forged, and whose checksums were written again to match."""

import shutil

import pytest

from evaluator.otbench.hub import push_release
from evaluator.otbench.integrity import ChangedReleaseError
from tests.otbench.forging import CELL, lacking, refused, reseal, setting, write_raw, write_small
from tests.requirements import require_module


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("forged"))


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


FORGED_MANIFESTS = {
    "no cells": (lacking("cells"), "cells: Field required"),
    "empty cells": (setting("cells", value=[]), "cells: List should have at least 1 item"),
    "cells as a text": (setting("cells", value="all"), "cells: Input should be a valid list"),
    "a cell twice": (lambda m: m["cells"].append(m["cells"][0]), "there twice"),
    "a file outside": (
        setting("cells", 0, "file", value="../x.parquet"),
        "cells.0.file: '../x.parquet' is not a plain name of a Parquet file",
    ),
    "an absolute file": (
        setting("cells", 0, "file", value="/etc/x.parquet"),
        "cells.0.file: '/etc/x.parquet' is not a plain name of a Parquet file",
    ),
    "a file that holds a line break": (
        setting("cells", 0, "file", value="x\n.parquet"),
        "is not a plain name",
    ),
    "a file that is not there": (
        setting("cells", 0, "file", value="x.parquet"),
        "files: trajectories/x.parquet is not among them",
    ),
    "a file of another cell": (
        lambda m: m["cells"][0].update(file=m["cells"][1]["file"]),
        "cells: a file is there twice",
    ),
    "files that changed places": (
        lambda m: (
            [
                cell.update(file=file)
                for cell, file in zip(
                    m["cells"], [m["cells"][i]["file"] for i in (2, 1, 0, 3)], strict=True
                )
            ]
            and None
        ),
        "holds rows of model|rows, and there must be",
    ),
    "another model": (
        setting("cells", 0, "model", value="gpt"),
        "holds rows of model 'model-0', not 'gpt'",
    ),
    "another benchmark": (
        setting("cells", 0, "benchmark", value="GPQA"),
        "8 questions of 'GPQA', and questions.parquet has 0",
    ),
    "fewer trajectories": (
        setting("trajectories", value=3),
        "trajectories: 3, and the cells have 52",
    ),
    "positions as a fraction": (
        setting("positions", value=2.5),
        "positions: Input should be a valid integer",
    ),
    "no probes": (setting("probes", value=0), "probes: Input should be greater than or equal to 1"),
    "true probes": (setting("probes", value=True), "probes: Input should be a valid integer"),
    "other probes": (setting("probes", value=7), "its probes is not the release's"),
    "probes missing": (lacking("probes"), "probes: Field required"),
    "no name": (lacking("name"), "name: Field required"),
    "a name that is null": (setting("name", value=None), "name: Input should be a valid string"),
    "a name that cannot be written": (setting("name", value="\ud800"), "no JSON in UTF-8"),
    "notes that are numbers": (setting("notes", value=[1]), "notes.0: Input should be a valid"),
    "no test questions": (lacking("questions", "test"), "questions.test: Field required"),
    "other questions": (
        lambda m: m["questions"].update(train=m["questions"]["train"] + 1, test=2),
        "train questions, and questions.parquet has|rows, and there must be",
    ),
    "questions moved between splits": (
        lambda m: m["questions"].update(
            train=m["questions"]["train"] - 1, test=m["questions"]["test"] + 1
        ),
        "train questions, and questions.parquet has",
    ),
    "another seed": (setting("splits", "seed", value=1), "by the seed and its text it is in"),
    "a huge fraction": (
        setting("splits", "train", value="1e999999999"),
        "splits.train: '1e999999999' is not a fraction",
    ),
    "a fraction of nothing": (setting("splits", "train", value="1/0"), "'1/0' is not a fraction"),
    "no test fraction": (
        setting("splits", "train", value="1"),
        "must leave test questions",
    ),
    "other strata": (setting("splits", "stratified_by", value="x"), "splits.stratified_by: "),
    "an unknown signal": (
        lambda m: m["signals"].append("clairvoyance"),
        "signals.*'clairvoyance' is not a signal",
    ),
    "fewer signals than there are": (
        lambda m: m["signals"].remove("entropy"),
        "signals: not those that all cells have",
    ),
    "a layer that is not there": (
        lambda m: m["cells"][0]["layers"].append(7),
        "column layer_7 is missing",
    ),
    "a layer twice": (lambda m: m["cells"][0]["layers"].append(2), "is there twice"),
    "a layer as a text": (setting("cells", 0, "layers", value=["2"]), "cells.0.layers.0: "),
    "a prompt's layer that is not there": (
        setting("cells", 0, "prompt_layers", value=[2, 5, 9]),
        "column layer_9 is missing",
    ),
    "campaigns as a number": (setting("campaigns", value=3), "campaigns: "),
    "packages missing": (lacking("packages"), "packages: Field required"),
}


@pytest.mark.parametrize("name", FORGED_MANIFESTS)
def test_a_forged_manifest_is_refused_and_says_where(copy, name):
    change, message = FORGED_MANIFESTS[name]
    reseal(copy, change_files=change)
    refused(copy, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lacking("files"), "files: Field required"),
        (setting("files", value=[]), "files: "),
        (setting("files", value={}), "files: questions.parquet is not among them"),
        (lacking("files", "questions.parquet"), "files: questions.parquet is not among them"),
        (lacking("files", f"hidden/{CELL}"), f"files: hidden/{CELL} is not among them"),
        (setting("files", "../x", value={}), "'../x' is not a file within the release"),
        (setting("files", "/etc/passwd", value={}), "is not a file within the release"),
        (setting("files", "a\0b", value={}), "is not a file within the release"),
        (setting("files", "", value={}), "'' is not a file within the release"),
        (setting("files", "README.md", value=3), "files.README.md: "),
        (lacking("files", "README.md", "sha256"), "files.README.md.sha256: Field required"),
        (setting("files", "README.md", "bytes", value=-1), "files.README.md.bytes: "),
        (setting("files", "README.md", "bytes", value=1), "; 1 were written"),
        (setting("files", "README.md", "sha256", value="0"), "README.md: changed"),
        (lambda m: m["files"].update({"x" * 5000: m["files"]["README.md"]}), "cannot be read"),
        (lacking("schema_version"), "schema_version is missing"),
        (setting("schema_version", value="1"), "schema_version is missing"),
        (setting("schema_version", value=2), "read it with the version that wrote it"),
    ],
)
def test_a_manifest_with_forged_files_is_refused(copy, change, message):
    reseal(copy, change_files=change)
    refused(copy, message)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"3", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"{}"]
)
def test_a_manifest_that_is_none_is_refused(copy, content):
    write_raw(copy, content)
    refused(copy, "manifest.json: no JSON|manifest.json: no manifest of a release")


def test_a_forged_release_is_not_sent_to_the_hub(copy, monkeypatch):
    require_module("huggingface_hub")
    reseal(copy, change_files=lacking("name"))
    with pytest.raises(ChangedReleaseError, match="name: Field required"):
        push_release(copy, "somebody/something")
