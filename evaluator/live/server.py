"""The HTTP server: chat completions over a model whose thinking a method stops."""

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from baselines.interface import Setting
from data import Question
from data.errors import EngineError, MisuseError, StpError
from evaluator.live.chat import ChatRequest, Reply, TextStream, read_request, setting_of, shown
from evaluator.live.service import BusyError, LiveRequest, Service
from evaluator.live.thinking import Listener, LiveTask, Outcome, Plan
from stp.campaign.fit import fit_prompt

_LOG = logging.getLogger("stp.serve")
_MENDED_TOKENS: Final = 8
"""Room for the text of a boundary token where thinking is cut."""
_THROWN_AWAY: Final = 8
"""How many times the largest body is read and thrown away before a client is cut off."""
_GONE: Final = 499
"""The status for a client that has gone: nobody reads it but a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How the server treats its clients.

    Attributes
    ----------
    model_name
        What it is called in replies; requests may name it or nothing.
    api_key
        What ``Authorization: Bearer`` must hold; None for no key.
    body_bytes
        Largest body of a request.
    request_seconds
        How long a request may take, waiting included.
    settings
        Those that a request may name; None for the method's whole grid.
    """

    model_name: str
    api_key: str | None = None
    body_bytes: int = 1 << 20
    request_seconds: float = 600.0
    settings: tuple[Setting, ...] | None = None


class _Refused(Exception):  # noqa: N818  (it is a reply, not a defect)
    """A reply that is an error."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code

    def response(self) -> JSONResponse:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        body = {"error": {"message": str(self), "type": kind, "code": self.code or None}}
        headers = {"Retry-After": "1"} if self.status == 429 else None
        return JSONResponse(body, self.status, headers)


class _Told(Listener):
    """Carries what the engine's thread says over to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    def _put(self, kind: str, value: Any) -> None:
        # A loop that has ended waits for nothing.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.events.put_nowait, (kind, value))

    def thought(self, token_ids: tuple[int, ...]) -> None:
        """Pass on thinking tokens."""
        self._put("thinking", token_ids)

    def answered(self, token_ids: tuple[int, ...]) -> None:
        """Pass on an answer's tokens."""
        self._put("answer", token_ids)

    def ended(self, outcome: Outcome | None, error: StpError | None) -> None:
        """Pass on the end."""
        self._put("end", outcome if error is None else error)


class ChatServer:
    """The application: its routes and their handlers.

    Parameters
    ----------
    service
        Runs what is asked for; it is closed when the application ends.
    plan
        The model and the method.
    options
        How clients are treated.
    """

    def __init__(self, service: Service, plan: Plan, options: ServerOptions) -> None:
        self._service, self._plan, self._options = service, plan, options
        self._sessions = itertools.count()
        # One thread: a template's process answers one after the other.
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="stp-serve-encode")
        self._encoding = 0
        """Requests whose prompts are encoded, or wait for it."""

    def application(self) -> Starlette:
        """Return the application for an ASGI server."""

        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            with self._service, self._encoder:
                yield

        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/health", self._health, methods=["GET"]),
            ],
            lifespan=lifespan,
            exception_handlers={HTTPException: _no_route},
        )

    # -- routes --------------------------------------------------------------------------------

    async def _health(self, request: Request) -> Response:
        alive = self._service.alive
        return JSONResponse({"open": self._service.open_jobs}, 200 if alive else 503)

    async def _models(self, request: Request) -> Response:
        try:
            self._check_key(request)
        except _Refused as refused:
            return refused.response()
        model = {"id": self._options.model_name, "object": "model", "owned_by": "stp"}
        return JSONResponse({"object": "list", "data": [model]})

    async def _complete(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.request_seconds
        try:
            self._check_key(request)
            try:
                async with asyncio.timeout_at(deadline):
                    asked = await self._read(request)
            except TimeoutError as error:
                raise _Refused(408, "the body did not come in time", "timeout") from error
            except ClientDisconnect:
                return Response(status_code=_GONE)
            try:
                job, reply, told = await self._encoded(asked, deadline)
                self._service.submit(job)
            except BusyError as error:
                raise _Refused(429, str(error), "busy") from error
            if asked.stream:
                return await self._streamed(asked, job, reply, told, deadline)
            return await self._whole(request, job, reply, told, deadline)
        except _Refused as refused:
            return refused.response()

    def _check_key(self, request: Request) -> None:
        key = self._options.api_key
        if key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            given.strip().encode(), key.encode()
        ):
            raise _Refused(401, "the API key is missing or wrong", "invalid_api_key")

    async def _read(self, request: Request) -> ChatRequest:
        """Return the request, its body read only as far as it may be."""
        most, size, body = self._options.body_bytes, 0, bytearray()
        async for part in request.stream():
            size += len(part)
            if size <= most:
                body += part
            elif size > _THROWN_AWAY * most:
                break
        # A client is still sending: one that is cut off there does not hear why.
        if size > most:
            raise _Refused(413, f"the body has more than {most:,} bytes", "too_large")
        try:
            asked = read_request(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise _Refused(400, f"the body is not JSON: {error}") from error
        except MisuseError as error:
            raise _Refused(400, str(error)) from error
        if asked.model not in ("", self._options.model_name):
            raise _Refused(
                404,
                f"there is no model '{shown(asked.model)}'; there is {self._options.model_name!r}",
                "model_not_found",
            )
        return asked

    async def _encoded(
        self, asked: ChatRequest, deadline: float
    ) -> tuple[LiveRequest, Reply, _Told]:
        """Return what :meth:`_job` does; those that wait to be encoded count as work."""
        loop = asyncio.get_running_loop()
        self._service.check_room(self._encoding)
        self._encoding += 1
        try:
            # A long prompt takes long to encode: meanwhile the others go on.
            async with asyncio.timeout_at(deadline):
                return await loop.run_in_executor(self._encoder, self._job, asked, loop)
        except TimeoutError as error:
            raise _Refused(504, self._too_long(), "timeout") from error
        finally:
            self._encoding -= 1

    def _job(
        self, asked: ChatRequest, loop: asyncio.AbstractEventLoop
    ) -> tuple[LiveRequest, Reply, _Told]:
        """Return what is handed to the service, what replies are made with, and who is told."""
        plan = self._plan
        policy = plan.policy if asked.stp.method == "on" else None
        try:
            setting = setting_of(asked, policy, self._options.settings)
            prompt_ids = plan.subject.format.chat_prompt_ids([m.plain() for m in asked.messages])
        except StpError as error:
            raise _Refused(400, str(error)) from error
        sampling = asked.model_dump(
            include={"temperature", "top_p", "presence_penalty"}, exclude_none=True
        )
        subject = replace(plan.subject, sampling=replace(plan.subject.sampling, **sampling))
        generation = plan.config.generation
        answer_tokens = asked.answer_tokens or generation.answer_tokens
        fit = fit_prompt(
            len(prompt_ids),
            closing_tokens=len(subject.format.close_ids) + _MENDED_TOKENS,
            thinking_limit=generation.thinking_limit,
            answer_tokens=answer_tokens,
            context_limit=subject.context_limit,
        )
        if fit.kind == "too_long":
            raise _Refused(
                400,
                f"the prompt of {len(prompt_ids):,} tokens leaves no room to think and for an "
                f"answer of {shown(f'{answer_tokens:,}')} in the context of "
                f"{subject.context_limit:,}",
                "context_length_exceeded",
            )
        text = asked.messages[-1].content
        digest = hashlib.sha256(repr(prompt_ids).encode()).hexdigest()
        task = LiveTask(
            benchmark="chat",
            question=Question(id=digest[:16], prompt=text, reference="0", answer_kind="math"),
            trajectory=0,
            prompt_ids=prompt_ids,
            thinking_limit=fit.thinking_limit,
            lot=int(digest[:13], 16) / 16**13,
            session=next(self._sessions),
            setting=setting,
            seed=secrets.randbits(62) if asked.seed is None else asked.seed,
            answer_tokens=answer_tokens,
        )
        told = _Told(loop)
        job = LiveRequest(
            task=task,
            plan=replace(plan, subject=subject, policy=policy),
            listener=told,
            ended=told.ended,
        )
        reply = Reply(
            id=f"chatcmpl-{secrets.token_hex(12)}",
            model=self._options.model_name,
            policy=policy,
            setting=setting if setting is not None or policy is None else policy.setting,
            prompt_tokens=len(prompt_ids),
            decisions=asked.stp.decisions,
        )
        return job, reply, told

    # -- replies -------------------------------------------------------------------------------

    async def _whole(
        self, request: Request, job: LiveRequest, reply: Reply, told: _Told, deadline: float
    ) -> Response:
        """Wait for the end, for the client to go, or for the time to be up."""
        end = asyncio.ensure_future(self._end_of(told))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            done, _ = await asyncio.wait(
                {end, gone},
                timeout=max(deadline - asyncio.get_running_loop().time(), 0.0),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if end not in done:
                if gone in done:
                    return Response(status_code=_GONE)
                raise _Refused(504, self._too_long(), "timeout")
            outcome = _outcome(end.result())
        finally:
            for waiting in (end, gone):
                waiting.cancel()
            self._service.cancel(job)
        self._log(reply, outcome)
        form = self._plan.subject.format
        thinking = form.decode(outcome.thinking_ids[: outcome.tokens], skip_special=True)
        answer = form.answer_text(outcome.answer_ids)
        stop = f"{outcome.reason}; position={outcome.position}; tokens={outcome.tokens}"
        return JSONResponse(reply.whole(outcome, thinking, answer), headers={"x-stp-stop": stop})

    async def _end_of(self, told: _Told) -> Outcome | StpError:
        while True:
            kind, value = await told.events.get()
            if kind == "end":
                found: Outcome | StpError = value
                return found

    async def _streamed(
        self, asked: ChatRequest, job: LiveRequest, reply: Reply, told: _Told, deadline: float
    ) -> StreamingResponse:
        """Begin a stream; its first event is waited for, so that an early failure is a status."""
        try:
            first = await self._next(told, deadline)
            if first[0] == "end":
                _outcome(first[1])
        except BaseException:
            self._service.cancel(job)
            raise
        events = self._events(asked, job, reply, told, deadline, first)
        return StreamingResponse(events, media_type="text/event-stream")

    async def _next(self, told: _Told, deadline: float) -> tuple[str, Any]:
        left = deadline - asyncio.get_running_loop().time()
        try:
            return await asyncio.wait_for(told.events.get(), max(left, 0.0))
        except TimeoutError as error:
            raise _Refused(504, self._too_long(), "timeout") from error

    async def _events(
        self,
        asked: ChatRequest,
        job: LiveRequest,
        reply: Reply,
        told: _Told,
        deadline: float,
        event: tuple[str, Any],
    ) -> AsyncIterator[str]:
        """Yield the events of a stream; a client that goes ends the work."""
        form = self._plan.subject.format
        texts = {"thinking": TextStream(form), "answer": TextStream(form, answer=True)}
        try:
            yield _event(reply.chunk({"role": "assistant"}))
            while event[0] != "end":
                kind, ids = event
                if text := texts[kind].add(ids):
                    yield _event(reply.chunk(_delta(kind, text)))
                event = await self._next(told, deadline)
            outcome = _outcome(event[1])
            self._log(reply, outcome)
            for kind, stream in texts.items():
                if text := stream.add((), last=True):
                    yield _event(reply.chunk(_delta(kind, text)))
            last = reply.chunk({}, reply.finish(outcome))
            yield _event({**last, "stp": reply.stopped(outcome)})
            if asked.stream_options is not None and asked.stream_options.include_usage:
                usage = {**reply.chunk({}), "choices": [], "usage": reply.usage(outcome)}
                yield _event(usage)
            yield "data: [DONE]\n\n"
        except _Refused as refused:
            # The status has been sent: the error is an event, as other servers of the protocol do.
            yield f"data: {bytes(refused.response().body).decode()}\n\n"
        finally:
            self._service.cancel(job)

    def _too_long(self) -> str:
        return f"the request took more than {self._options.request_seconds:g} seconds"

    def _log(self, reply: Reply, outcome: Outcome) -> None:
        """Say where the thinking was stopped and by which decisions."""
        for entry in outcome.decisions:
            _LOG.info(
                "%s: position %d, %d tokens: score %s, setting %s: %s",
                reply.id,
                entry.position,
                entry.tokens,
                entry.score,
                reply.setting,
                "stop" if entry.stops else "continue",
            )
        _LOG.info(
            "%s: ended by %s at position %d, %d thinking tokens",
            reply.id,
            outcome.reason,
            outcome.position,
            outcome.tokens,
        )


async def _no_route(request: Request, error: Exception) -> Response:
    """Say in the protocol's form that there is no such address, or no such method at it."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {shown(request.url.path)}: {error.detail.lower()}"
    response = _Refused(error.status_code, message).response()
    response.headers.update(error.headers or {})
    return response


def _outcome(value: Outcome | StpError) -> Outcome:
    """Return an outcome; an engine's failure is a bad gateway."""
    if isinstance(value, EngineError):
        raise _Refused(502, str(value), "engine_failed")
    if isinstance(value, StpError):
        raise _Refused(400, str(value))
    return value


def _delta(kind: str, text: str) -> Mapping[str, str]:
    if kind == "thinking":
        return {"reasoning_content": text, "reasoning": text}
    return {"content": text}


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


async def _disconnected(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
