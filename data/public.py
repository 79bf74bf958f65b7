"""Questions of a public data set: from a local copy of its file, or from the Hugging Face hub.

Both ways read the same files of the same revision, so both give the same questions.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import MissingDependencyError, MisuseError, StoreError, one_line
from data.files import SUFFIXES, RawRow, read_rows
from data.question import Question

DATA_DIR_VARIABLE = "STP_DATA_DIR"
"""Environment variable that names the folder of question files where no ``data_dir`` is given."""

HUB = "https://huggingface.co/datasets"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSource:
    """A public data set on the Hugging Face hub, and the names its file has locally.

    Attributes
    ----------
    repository
        Its id on the hub.
    revision
        Commit of that repository.
    files
        Paths in the repository whose rows, one file after the other, are the questions.
    licence
        As the publisher states it.
    rows_expected
        Rows of the files together.
    local_names
        Names, without ending, that a local copy may have; the first is the one advised.
    parse
        Makes questions from all rows, given the benchmark's name and the place of the rows.
    gated
        Whether the hub asks for terms to be accepted first.
    """

    repository: str
    revision: str
    files: tuple[str, ...]
    licence: str
    rows_expected: int
    local_names: tuple[str, ...]
    parse: Callable[[str, Sequence[RawRow], str], list[Question]]
    gated: bool = False

    def describe(self) -> str:
        """Return repository and revision, the commit cut to seven digits."""
        return f"{self.repository}@{self.revision[:7]}"

    def available(self, data_dir: Path | None) -> str:
        """Return the local file, or the place in the hub's cache, or ``""``."""
        for path in self._local_candidates(_data_dir(data_dir)):
            if all(part.is_file() for part in path):
                return str(path[0])
        cached = [self._cache_folder() / file for file in self.files]
        return "hub cache" if all(path.is_file() for path in cached) else ""

    def questions(self, benchmark: str, data_dir: Path | None, limit: int | None) -> list[Question]:
        """Read and parse all rows.

        Raises
        ------
        data.errors.MisuseError
            If there is no file and no hub, or not the expected number of rows.
        data.errors.StoreError
            If the hub cannot be reached.
        """
        folder = _data_dir(data_dir)
        rows: list[RawRow] | None = None
        where = ""
        for candidate in self._local_candidates(folder):
            if all(part.is_file() for part in candidate):
                rows = [row for part in candidate for row in read_rows(part)]
                where = str(candidate[0])
                break
        if rows is None and folder is not None:
            raise MisuseError(f"{benchmark}: no question file in {folder}. {self._advice(folder)}")
        if rows is None:
            rows = self._read_hub(benchmark)
            where = f"{HUB}/{self.repository}"
        if len(rows) != self.rows_expected:
            raise MisuseError(
                f"{benchmark}: {where} has {len(rows)} rows, and {self.rows_expected} are "
                f"expected. {self._advice(folder)}"
            )
        return self.parse(benchmark, rows, where)

    def _local_candidates(self, folder: Path | None) -> list[tuple[Path, ...]]:
        if folder is None:
            return []
        single = [(folder / f"{name}{suffix}",) for name in self.local_names for suffix in SUFFIXES]
        fetched = tuple(folder / self.local_names[0] / file for file in self.files)
        return [*single, fetched]

    def _advice(self, folder: Path | None) -> str:
        target = f"{folder or 'DIR'}/{self.local_names[0]}"
        terms = f" (accept its terms at {HUB}/{self.repository} first)" if self.gated else ""
        where = "" if folder else ", then set STP_DATA_DIR=DIR (or data_dir in a campaign file)"
        return (
            f"Download it with `hf download {self.repository} {' '.join(self.files)} "
            f"--repo-type dataset --revision {self.revision} --local-dir {target}`{terms}{where}"
        )

    def _cache_folder(self) -> Path:
        home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
        cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
        name = "datasets--" + self.repository.replace("/", "--")
        return cache / name / "snapshots" / self.revision

    def _read_hub(self, benchmark: str) -> list[RawRow]:
        try:
            import datasets
        except ImportError as error:
            raise MissingDependencyError(
                f"{benchmark}: reading the hub needs the extra `hub` (pip install "
                f"'stp-engine[hub]'). Or, where it is: {self._advice(None)}"
            ) from error

        builder = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}[
            Path(self.files[0]).suffix
        ]
        # An option may well be "None" or "NA"; to the CSV reader these are missing values.
        options = {"keep_default_na": False} if builder == "csv" else {}
        urls = [hub_url(self.repository, self.revision, file) for file in self.files]
        try:
            table = datasets.load_dataset(
                builder, data_files={"rows": urls}, split="rows", **options
            )
        except Exception as error:
            # Whatever the hub's clients raise (theirs, httpx's, pyarrow's) means the same to us.
            kind = StoreError if _unreachable(error) else MisuseError
            raise kind(
                f"{benchmark}: cannot read {self.repository} from the hub "
                f"({type(error).__name__}: {one_line(error):.200}). {self._advice(None)}"
            ) from error
        return list(table)


def hub_url(repository: str, revision: str, file: str) -> str:
    """Return the fsspec URL of one file of a data set at a revision."""
    return f"hf://datasets/{repository}@{revision}/{file}"


def _unreachable(error: BaseException) -> bool:
    """Return whether there was no connection: a failure; a refusal is misuse."""
    kinds = type(error).__mro__
    # That is a connection error, too, and a setting of the user's.
    if any(kind.__name__ == "OfflineModeIsEnabled" for kind in kinds):
        return False
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    # The client is httpx or httpx2, by the hub's version; neither is a dependency of this package.
    return any(
        kind.__name__ == "TransportError" and kind.__module__.partition(".")[0].startswith("httpx")
        for kind in kinds
    )


def _data_dir(data_dir: Path | None) -> Path | None:
    if data_dir is not None:
        if not data_dir.is_dir():
            raise MisuseError(f"{data_dir}: no such folder of question files (--data-dir)")
        return data_dir
    named = os.environ.get(DATA_DIR_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise MisuseError(f"{named}: no such folder of question files ({DATA_DIR_VARIABLE})")
    return Path(named)
