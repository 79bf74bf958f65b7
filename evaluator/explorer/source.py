"""What a folder gives the page: pieces of JSON, each with a name."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from data.errors import StpError

Piece = dict[str, Any]


class NoPieceError(StpError):
    """A piece that a folder does not have."""


class TrajectoryKey(NamedTuple):
    """What a trajectory is called in whatever knows of it; ``sample`` is which of a question's."""

    model: str
    benchmark: str
    question: str
    sample: int


class Source(Protocol):
    """One folder."""

    kind: str

    def index(self) -> Piece:
        """Return what it is, and what there is to look at."""

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces but the index."""

    def piece(self, name: str) -> Piece:
        """Return a piece.

        Raises
        ------
        NoPieceError
            If there is none of that name.
        """


@runtime_checkable
class Measured(Protocol):
    """A folder with curves."""

    def key(self, cell: int, row: int) -> TrajectoryKey:
        """Return what a trajectory is called."""

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield cell and row of every trajectory."""


@runtime_checkable
class KnowsStops(Protocol):
    """A folder that knows where methods stop, or stopped, a trajectory."""

    def stops(self, key: TrajectoryKey) -> list[Piece]:
        """Return an entry for each method; none if it knows nothing of the trajectory."""


class Sources:
    """All folders that were opened together.

    Parameters
    ----------
    sources
        In the order of the page. Their pieces are called by their place: ``0/index``. Where
        methods stop a trajectory of place P is ``stops/P/C/R``, from all folders that know it.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._stopping = [each for each in self._sources if isinstance(each, KnowsStops)]
        self._measured = {
            place: each for place, each in enumerate(sources) if isinstance(each, Measured)
        }

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces, the list of folders first."""
        yield "index"
        for place, source in enumerate(self._sources):
            yield f"{place}/index"
            for name in source.names():
                yield f"{place}/{name}"
        if self._stopping:
            for place, measured in self._measured.items():
                yield from (f"stops/{place}/{cell}/{row}" for cell, row in measured.rows())

    def piece(self, name: str) -> Piece:
        """Return a piece.

        Raises
        ------
        NoPieceError
            If there is none of that name.
        """
        if name == "index":
            return {
                "sources": [source.index() for source in self._sources],
                "stops": bool(self._stopping),
            }
        if at := whole_numbers(name, "stops/#/#/#"):
            return self._stops(name, *at)
        place, _, rest = name.partition("/")
        if not re.fullmatch(r"[0-9]{1,4}", place) or int(place) >= len(self._sources):
            raise NoPieceError(f"no piece {name!r}")
        source = self._sources[int(place)]
        return source.index() if rest == "index" else source.piece(rest)

    def _stops(self, name: str, place: int, cell: int, row: int) -> Piece:
        source = self._measured.get(place)
        if source is None:
            raise NoPieceError(f"no piece {name!r}")
        try:
            key = source.key(cell, row)
        except (IndexError, KeyError) as error:
            raise NoPieceError(f"no piece {name!r}") from error
        return {"methods": [found for each in self._stopping for found in each.stops(key)]}


def piece_script(name: str, value: Piece) -> str:
    r"""Return a piece as a script that registers it.

    JSON is JavaScript, and what could end a script or a line of it is escaped.

    Examples
    --------
    >>> piece_script("0/cell/1", {"rows": [1, 2]})
    'stpPiece("0/cell/1",{"rows":[1,2]});\\n'
    """
    from evaluator.present.page import script_json

    return f"stpPiece({json.dumps(name)},{script_json(value)});\n"


def whole_numbers(name: str, pattern: str) -> tuple[int, ...] | None:
    """Return the numbers in a piece's name; None if it has another form.

    Examples
    --------
    >>> whole_numbers("cell/12", "cell/#"), whole_numbers("cell/x", "cell/#")
    ((12,), None)
    """
    found = re.fullmatch(re.escape(pattern).replace(r"\#", "([0-9]{1,9})"), name)
    return tuple(map(int, found.groups())) if found else None
