"""Responses on disk: one strict JSON object a line, appended durably, so that a run can continue.

A line is written whole and synced before the next; a torn last line of a killed run is cut off
when the file is opened again. Of several lines with one id the last counts: a response that
failed is asked for again, and its line stays.
"""

import dataclasses
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from data.errors import StoreError
from data.files import plain_file
from stp.asking.base import Request, Response
from stp.files import json_bytes, json_object, read_error, sync_folder, write_error

_LOG = logging.getLogger(__name__)

_FIELDS = {field.name: field for field in dataclasses.fields(Response)}


class ResponseStore:
    """The responses of one run, in one JSONL file; a context manager while it is written.

    Parameters
    ----------
    path
        The file; its folder is made. Nothing is read yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: IO[bytes] | None = None

    def read(self) -> dict[str, Response]:
        """Return what is stored, by id, failed responses included.

        Raises
        ------
        data.errors.StoreError
            If the file cannot be read, or a line that is not the torn last one is not a response.
        """
        responses: dict[str, Response] = {}
        for number, line in enumerate(self._lines(), start=1):
            response = _decode(line, f"{self.path}, line {number}")
            responses[response.id] = response
        return responses

    def missing(self, requests: Iterable[Request]) -> list[Request]:
        """Return the requests that have no response yet, or a failed one, in their order."""
        done = {key for key, response in self.read().items() if response.error is None}
        return [request for request in requests if request.id not in done]

    def __enter__(self) -> "ResponseStore":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._cut_torn_line()
            self._file = self.path.open("ab")
            sync_folder(self.path.parent)
        except OSError as error:
            raise StoreError(write_error(str(self.path), error)) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            file.close()
        except OSError as trouble:
            # What a full disk did not take is tried once more here; it has been told already.
            if error is None:
                raise StoreError(write_error(str(self.path), trouble)) from trouble

    def append(self, response: Response) -> None:
        """Add a response; when this returns it is on the disk.

        Raises
        ------
        data.errors.StoreError
            If the disk is full or refuses.
        """
        self.append_row(dataclasses.asdict(response))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the lines as the objects that they hold, whatever these are.

        Raises
        ------
        data.errors.StoreError
            If the file cannot be read, or a line that is not the torn last one is not an object.
        """
        for number, line in enumerate(self._lines(), start=1):
            yield json_object(line, f"{self.path}, line {number}")

    def append_row(self, row: Mapping[str, Any]) -> None:
        """Add an object; when this returns it is on the disk; see :meth:`append`."""
        if self._file is None:
            raise StoreError(f"{self.path}: is not open for writing; use it as a context manager")
        try:
            self._file.write(json_bytes(row) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(write_error(str(self.path), error)) from error

    def _lines(self) -> list[bytes]:
        try:
            content = plain_file(self.path).read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(read_error(str(self.path), error)) from error
        # What follows the last line break was never finished.
        return content.split(b"\n")[:-1]

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        content = plain_file(self.path).read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            _LOG.warning("%s: cutting off a line that was not finished", self.path)
            with self.path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())


def _decode(line: bytes, where: str) -> Response:
    try:
        values = json.loads(line)
        return Response(**{name: values[name] for name in _FIELDS if name in values})
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{where}: is not a stored response ({error}); remove the line to ask again"
        ) from error
