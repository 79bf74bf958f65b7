"""The server: its token, its policy, and that nothing but pieces can be asked for."""

import threading
import urllib.error
import urllib.request

import pytest
from starlette.testclient import TestClient

from data.errors import MisuseError
from evaluator.explorer.opening import open_sources
from evaluator.explorer.server import application, listen, server
from evaluator.explorer.static import write_static
from tests.explorer.made import campaign, hostile_campaign

TOKEN = "the-token"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return open_sources([campaign(tmp_path_factory.mktemp("made") / "campaign", questions=(2, 2))])


@pytest.fixture
def client(sources):
    return TestClient(application(sources, TOKEN), base_url="http://127.0.0.1")


def test_the_page_allows_its_own_scripts_alone(client):
    answer = client.get(f"/{TOKEN}/")
    assert answer.status_code == 200
    policy = answer.text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    assert "<script>" not in answer.text
    assert " on" + "click=" not in answer.text
    for header, value in (
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
    ):
        assert answer.headers[header] == value


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/wrong/",
        "/wrong/pieces/index.js",
        "/wrong/app/core.js",
        f"/{TOKEN}x/",
        f"/{TOKEN}/app/../server.py",
        f"/{TOKEN}/app/%2e%2e%2fserver.py",
        f"/{TOKEN}/app/..%2f..%2fserver.py",
        f"/{TOKEN}/campaign.toml",
        f"/{TOKEN}/pieces/index",
    ],
)
def test_elsewhere_there_is_nothing(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "../campaign.toml",
        "..%2f..%2f..%2fetc%2fpasswd",
        "0/../../etc/passwd",
        "0/t/0/..%2f0",
        "%00",
        "0/cell/0%00",
        "file:///etc/passwd",
    ],
)
def test_a_name_never_reaches_the_disk(client, name):
    answer = client.get(f"/{TOKEN}/pieces/{name}.js")
    assert answer.status_code == 404 or answer.text.startswith("stpFailed(")
    assert "root:" not in answer.text
    assert "[[models]]" not in answer.text


def test_only_reading_is_allowed(client):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(client, method)(f"/{TOKEN}/").status_code in (404, 405)


def test_another_host_name_is_refused(sources):
    elsewhere = TestClient(application(sources, TOKEN), base_url="http://evil.example")
    assert elsewhere.get(f"/{TOKEN}/").status_code == 400


def test_a_failure_is_told_to_the_page(sources, monkeypatch, caplog):
    def broken(name):
        raise RuntimeError("secret of the machine")

    monkeypatch.setattr(sources, "piece", broken)
    answer = TestClient(application(sources, TOKEN), base_url="http://127.0.0.1").get(
        f"/{TOKEN}/pieces/0/index.js"
    )
    assert answer.text.startswith("stpFailed(")
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_it_listens_on_this_machine_alone(sources):
    listening = listen()
    running = server(sources, listening)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening.socket]})
    thread.start()
    try:
        host, port = listening.socket.getsockname()
        assert host == "127.0.0.1"
        assert listening.token in listening.address
        with urllib.request.urlopen(listening.address, timeout=20) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
        with pytest.raises(MisuseError, match=f"port {port}"):
            listen(port)
    finally:
        running.should_exit = True
        thread.join()
    other = listen()
    other.socket.close()
    assert other.token != listening.token


def test_files_hold_what_the_server_gives(client, sources, tmp_path):
    page = write_static(sources, tmp_path / "site")
    assert page.read_text(encoding="utf-8") == client.get(f"/{TOKEN}/").text
    pieces = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.js")}
    for name in sources.names():
        path = tmp_path / "site" / "pieces" / f"{name}.js"
        assert path.read_text(encoding="utf-8") == client.get(f"/{TOKEN}/pieces/{name}.js").text
        pieces.remove(path.relative_to(tmp_path / "site"))
    assert {path.parts[0] for path in pieces} == {"app"}
    for path in pieces:
        assert (tmp_path / "site" / path).read_bytes() == client.get(f"/{TOKEN}/{path}").content
    assert (tmp_path / "site" / "app" / "echarts.LICENSE").is_file()
    with pytest.raises(MisuseError, match="not empty"):
        write_static(sources, tmp_path / "site")


def test_nothing_outside_of_the_folder_is_read(tmp_path, monkeypatch):
    """A campaign names its models; a name that is a path leads nowhere else."""
    import builtins
    import io

    url = hostile_campaign(tmp_path / "hostile")
    sources = open_sources([url])
    opened = []
    real = io.open

    def watched(file, *arguments, **options):
        opened.append(str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", watched)
    monkeypatch.setattr(io, "open", watched)
    for name in sources.names():
        sources.piece(name)
    campaigns = [path for path in opened if str(tmp_path) in path]
    assert campaigns
    assert all(path.startswith(url) for path in campaigns)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    url = campaign(tmp_path / "campaign", questions=(2, 2))
    secret = tmp_path / "secret.json"
    secret.write_text("{}", encoding="utf-8")
    (tmp_path / "campaign" / "inside.json").symlink_to(tmp_path / "campaign" / "manifest.json")
    open_sources([url])
    (tmp_path / "campaign" / "notes").symlink_to(secret)
    with pytest.raises(MisuseError, match=r"notes.*outside"):
        open_sources([url])
