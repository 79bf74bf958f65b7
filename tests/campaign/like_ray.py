"""A likeness of Ray in this process: actors are threads with an event loop each.

It has what :class:`stp.campaign.pool.RayPool` uses, so that who gets which unit when can be tested
without starting a cluster.
"""

import asyncio
import concurrent.futures
import threading
from types import SimpleNamespace


class RayError(Exception):
    """What Ray raises when an actor is lost."""


class RayTaskError(RayError):
    """What Ray raises for an exception of an actor's own."""

    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class _Actor:
    def __init__(self, instance):
        self.instance = instance
        self.calls = []
        self._lost = False
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def __getattr__(self, name):
        return _Method(self, getattr(self.instance, name))

    def call(self, method, arguments):
        future = asyncio.run_coroutine_threadsafe(method(*arguments), self._loop)
        ref = concurrent.futures.Future()
        self.calls.append(ref)
        if self._lost:
            self.lose()

        def ended(done):
            if ref.done():
                return  # The actor was lost meanwhile.
            error = done.exception()
            if error is None:
                ref.set_result(done.result())
            else:
                ref.set_exception(RayTaskError(error))

        future.add_done_callback(ended)
        return ref

    def lose(self):
        self._lost = True
        for ref in self.calls:
            if not ref.done():
                ref.set_exception(RayError("the actor died"))


class _Method:
    def __init__(self, actor, method):
        self._actor, self._method = actor, method

    def remote(self, *arguments):
        return self._actor.call(self._method, arguments)


class _Class:
    def __init__(self, ray, made):
        self._ray, self._made = ray, made

    def options(self, **_):
        return self

    def remote(self, *arguments):
        self._ray.actors.append(actor := _Actor(self._made(*arguments)))
        return actor


class LikeRay:
    """One node with room for everybody. ``actors`` are all that were started."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self):
        self.actors = []

    def remote(self, made):
        return _Class(self, made)

    def cluster_resources(self):
        return {"CPU": 8.0}

    def nodes(self):
        return [{"Alive": True}]

    def wait(self, refs, *, num_returns, timeout):
        done, _ = concurrent.futures.wait(
            refs, timeout, return_when=concurrent.futures.FIRST_COMPLETED
        )
        first = [ref for ref in refs if ref in done][:num_returns]
        return first, [ref for ref in refs if ref not in first]

    def get(self, ref):
        return ref.result()

    def kill(self, actor):
        actor.lose()
