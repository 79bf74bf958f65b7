"""Messages over a socket, each of a known length, sent and received within a time limit."""

import socket
import time

_LENGTH_BYTES = 8
_PIECE = 1 << 20


class WireError(OSError):
    """A message is longer than allowed."""


class Wire:
    """One end of a socket.

    Parameters
    ----------
    end
        A connected stream socket, which is closed with the wire.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: bytes, *, seconds: float | None = None) -> None:
        """Send a message.

        Raises
        ------
        TimeoutError
            If the other end does not take it in time.
        OSError
            If the other end is gone.
        """
        self._end.settimeout(seconds)
        self._end.sendall(len(message).to_bytes(_LENGTH_BYTES, "big"))
        self._end.sendall(message)

    def wait(self) -> None:
        """Wait for the first byte of a message, for as long as it takes."""
        self._end.settimeout(None)
        self._end.recv(1, socket.MSG_PEEK)

    def receive(self, limit: int, *, seconds: float | None = None) -> bytes:
        """Return the next message.

        Parameters
        ----------
        limit
            The longest message that is allowed, in bytes.
        seconds
            For the whole message.

        Raises
        ------
        TimeoutError
            If it is not there in time.
        WireError
            If it is longer than the limit.
        EOFError, OSError
            If the other end is gone.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        length = int.from_bytes(self._exactly(_LENGTH_BYTES, deadline), "big")
        if length > limit:
            raise WireError(f"a message of {length:,} bytes")
        return self._exactly(length, deadline)

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts, missing = [], count
        while missing:
            left = None if deadline is None else max(0.001, deadline - time.monotonic())
            self._end.settimeout(left)
            part = self._end.recv(min(missing, _PIECE))
            if not part:
                raise EOFError
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)
