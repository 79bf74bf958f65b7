"""Texts that were pickled, compressed and written in base64, read without running anything.

LiveCodeBench packs its private tests so. A pickle is a program that can call any function; here
only pickles are accepted whose every instruction makes or stores one text, and nothing that could
name a function is ever looked up.
"""

import base64
import binascii
import io
import pickle
import pickletools
import zlib

MAX_UNPACKED_BYTES = 1 << 30
"""Most bytes that a packed text may have; a few kilobytes can be made to unpack to any size."""

ALLOWED_OPCODES = frozenset(
    {
        "PROTO",
        "FRAME",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "SHORT_BINBYTES",
        "BINBYTES",
        "BINBYTES8",
        "PUT",
        "BINPUT",
        "LONG_BINPUT",
        "MEMOIZE",
        "STOP",
    }
)
"""Pickle instructions that make a text or bytes, or remember it."""


class PackedTestsError(ValueError):
    """The text is not packed as expected, or holds more than a text."""


class _TextUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        raise PackedTestsError(f"the pickle asks for {module}.{name}")

    def persistent_load(self, pid: object) -> object:
        raise PackedTestsError("the pickle asks for a persistent object")


def unpack_text(packed: str, max_bytes: int = MAX_UNPACKED_BYTES) -> str:
    """Return the text that a packed text holds.

    Parameters
    ----------
    packed
        Base64 of a zlib stream of a pickle of one ``str`` or ``bytes`` (UTF-8).
    max_bytes
        Most bytes of the pickle.

    Raises
    ------
    PackedTestsError
        If any layer is damaged, too large, or holds anything but one text.
    """
    try:
        compressed = base64.b64decode(packed, validate=True)
        stream = zlib.decompressobj()
        pickled = stream.decompress(compressed, max_bytes)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise PackedTestsError(f"not base64 of a zlib stream: {error}") from error
    if stream.unconsumed_tail:
        raise PackedTestsError(f"unpacks to more than {max_bytes} bytes")
    if not stream.eof:
        raise PackedTestsError("the zlib stream is cut off")
    try:
        for opcode, _, _ in pickletools.genops(pickled):
            if opcode.name not in ALLOWED_OPCODES:
                raise PackedTestsError(f"the pickle holds the instruction {opcode.name}")
        value = _TextUnpickler(io.BytesIO(pickled)).load()
    except (ValueError, pickle.UnpicklingError, EOFError, IndexError) as error:
        if isinstance(error, PackedTestsError):
            raise
        raise PackedTestsError(f"not a whole pickle: {error}") from error
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise PackedTestsError(f"bytes that are not UTF-8: {error}") from error
    if not isinstance(value, str):
        raise PackedTestsError(f"holds a {type(value).__name__}, not a text")
    return value
