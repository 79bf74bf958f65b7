import json
import resource
import signal

import pytest

from data.errors import ConfigError, StoreError
from evaluator.runs.asking import Missing, ask_missing
from stp.asking import CallableResponder, Request, Responder, Response, ResponseStore, Settings
from stp.files import json_bytes

REQUESTS = [Request(id=str(number), prompt="?", seed=number) for number in range(4)]


def response(key, **values):
    return Response(**{"id": key, "text": f"answer {key}", **values})


def test_what_is_written_is_read_and_not_asked_again(tmp_path):
    path = tmp_path / "run" / "responses.jsonl"
    first = response("0", thinking="hm", thinking_tokens=3, answer_tokens=0, output_tokens=4)
    with ResponseStore(path) as store:
        store.append(first)
        store.append(response("2", text='line\u2028break\nand "quotes" ü'))
    store = ResponseStore(path)
    assert store.read()["0"] == first
    assert store.read()["2"].text == 'line\u2028break\nand "quotes" ü'
    assert [request.id for request in store.missing(REQUESTS)] == ["1", "3"]
    assert len(path.read_bytes().splitlines()) >= 2


def test_a_failed_response_is_asked_for_again_and_replaced(tmp_path):
    path = tmp_path / "responses.jsonl"
    with ResponseStore(path) as store:
        store.append(response("1", text="", finish="error", error="server on fire"))
        assert "1" in {request.id for request in store.missing(REQUESTS)}
        store.append(response("1"))
        assert "1" not in {request.id for request in store.missing(REQUESTS)}
    assert ResponseStore(path).read()["1"].error is None


@pytest.mark.parametrize("kept", range(0, 60, 7))
def test_a_torn_last_line_is_cut_off_and_all_others_kept(tmp_path, kept):
    path = tmp_path / "responses.jsonl"
    with ResponseStore(path) as store:
        store.append(response("0"))
        store.append(response("1"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:kept])
    assert set(ResponseStore(path).read()) == {"0"}
    with ResponseStore(path) as store:
        store.append(response("3"))
    assert set(ResponseStore(path).read()) == {"0", "3"}


def test_a_line_that_is_no_response_is_an_error_with_its_number(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_text('{"id": "0", "text": "a"}\n{"text": 3}\n')
    with pytest.raises(StoreError, match="line 2"):
        ResponseStore(path).read()


def test_half_characters_are_replaced_and_nan_refused(tmp_path):
    path = tmp_path / "responses.jsonl"
    with ResponseStore(path) as store:
        store.append(response("0", text="half \ud83d gone"))
    with pytest.raises(ValueError, match="seconds is nan"):
        response("1", seconds=float("nan"))
    with pytest.raises(ValueError, match="JSON"):
        json_bytes({"a": float("nan")})
    assert ResponseStore(path).read()["0"].text == "half \ufffd gone"
    path.read_bytes().decode("utf-8")
    assert json.loads(json_bytes({"a": None})) == {"a": None}


def test_writing_needs_an_open_store(tmp_path):
    with pytest.raises(StoreError, match="not open"):
        ResponseStore(tmp_path / "r.jsonl").append(response("0"))
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreError, match="cannot be written"),
        ResponseStore(tmp_path / "file" / "r.jsonl"),
    ):
        pass


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0; it must be 1 or more"),
        ({"thinking_tokens": -1}, "thinking_tokens"),
        ({"top_p": 1.5}, "from 0 to 1"),
        ({"temperature": float("nan")}, "temperature"),
        ({"thinking": "maybe"}, "default, on or off"),
        ({"reasoning_effort": "huge"}, "choose from"),
        ({"tools": ("shell",)}, "there are calculator, python"),
    ],
)
def test_settings_that_cannot_be_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Settings(**values)


def test_a_prompt_is_dressed_once_on_each_side():
    settings = Settings(prompt_prefix="Be brief.", prompt_suffix="Only a number.")
    assert settings.dress("2 + 2?") == "Be brief.\n\n2 + 2?\n\nOnly a number."


@pytest.mark.parametrize(
    "values",
    [
        {"output_tokens": -5},
        {"output_tokens": 3.7},
        {"thinking_tokens": "9"},
        {"answer_tokens": 10**30},
        {"text": 7},
        {"id": ["a"]},
        {"thinking": 3},
        {"seconds": -1.0},
        {"finish": "banana"},
        {"finish": None},
    ],
)
def test_a_line_whose_values_cannot_be_is_no_response(tmp_path, values):
    path = tmp_path / "responses.jsonl"
    path.write_text(json.dumps({"id": "a", "text": "b", **values}) + "\n")
    with pytest.raises(StoreError, match="is not a stored response"):
        ResponseStore(path).read()


def test_what_is_missing_is_asked_and_kept_and_failures_are_told(tmp_path):
    store = ResponseStore(tmp_path / "responses.jsonl")
    with store:
        store.append(response("0"))

    calls = []

    def model(prompt):
        calls.append(prompt)
        if len(calls) == 2:
            raise ConnectionError("line is dead")
        return "x"

    told = []

    def ask():
        missing = store.missing(REQUESTS)
        (errors,) = ask_missing(
            CallableResponder(model),
            Missing(
                store=store,
                requests=missing,
                settings=Settings(),
                total=4,
                progress=lambda *far: told.append(far),
            ),
        )
        return errors

    assert ask() == ["2: ConnectionError: line is dead"]
    assert told == [(1, 4), (2, 4), (2, 4), (3, 4)]
    assert ask() == []
    assert told[4:] == [(3, 4), (4, 4)]
    assert ask() == []
    assert len(told) == 6


class Shuffled(Responder):
    """Answers two groups' requests in an order that is given: group, request, error."""

    def __init__(self, order):
        self.order = order

    def respond(self, *groups):
        for number, place, error in self.order:
            group = groups[number]
            group.on_response(response(group.requests[place].id, error=error))

    def describe(self):
        return {}


def test_parts_are_asked_in_one_stream_and_told_one_after_the_other(tmp_path):
    told = []
    parts = [
        Missing(
            store=ResponseStore(tmp_path / f"{name}.jsonl"),
            requests=REQUESTS[:count],
            settings=Settings(),
            total=4,
            progress=lambda *far, name=name: told.append((name, *far)),
        )
        for name, count in (("a", 2), ("nothing", 0), ("b", 3), ("c", 1))
    ]
    # Of a, b and c: b ends before the last of a does.
    order = [(0, 1, None), (1, 0, None), (1, 2, "dead"), (1, 1, None), (0, 0, "lost"), (2, 0, None)]
    errors = ask_missing(Shuffled(order), *parts)
    assert errors == [["0: lost"], [], ["2: dead"], []]
    assert told == [
        *(("a", 2, 4), ("a", 3, 4), ("a", 3, 4)),
        ("b", 3, 4),
        *(("c", 3, 4), ("c", 4, 4)),
    ]
    assert list(parts[2].store.read()) == ["0", "2", "1"]
    assert not parts[1].store.path.exists()
    assert ask_missing(Shuffled([]), parts[1]) == [[]]


def test_a_full_disk_is_one_error_and_what_was_written_stays(tmp_path):
    path = tmp_path / "responses.jsonl"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with (
            pytest.raises(StoreError, match="the disk is full"),
            ResponseStore(path) as store,
        ):
            store.append(response("0"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, limit[1]))
            store.append(response("1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, old)
    assert set(ResponseStore(path).read()) == {"0"}
    with ResponseStore(path) as store:
        store.append(response("1"))
    assert set(ResponseStore(path).read()) == {"0", "1"}
