"""Whether a server answers at its address, before the first of many requests is sent."""

import socket
import urllib.request
from urllib.parse import SplitResult, urlsplit

from data.errors import ConfigError, EngineError

CONNECT_SECONDS = 3.0
"""Whoever has not taken or refused a connection by then is slow, and is not refused."""


def split_address(url: str) -> SplitResult:
    """Return the parts of a server's address.

    Raises
    ------
    data.errors.ConfigError
        If it is not an address.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:  # A port that is not a port.
        pass
    raise ConfigError(f"base URL {url!r}: is not an address of a server; write http://HOST:PORT/v1")


def check_reachable(url: str) -> None:
    """Connect to a server once, and disconnect.

    A server that is slow, or that only a proxy reaches, is not refused.

    Raises
    ------
    data.errors.EngineError
        If its name is not known, or no server listens at its address.
    """
    parts = split_address(url)
    host = parts.hostname or ""
    if _behind_proxy(parts.scheme, host):
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS, all_errors=True).close()
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no name of a host"
        raise EngineError(f"no server at {url}: {reason} ({host}); correct its address") from error
    except ExceptionGroup as tried:
        # One address of several may still be slow.
        if all(isinstance(each, ConnectionRefusedError) for each in tried.exceptions):
            raise EngineError(
                f"no server at {url}: connection refused; start it, or correct its address"
            ) from tried
    except OSError:
        return


def _behind_proxy(scheme: str, host: str) -> bool:
    proxies = urllib.request.getproxies()
    if not (scheme in proxies or "all" in proxies):
        return False
    return not urllib.request.proxy_bypass(host)
