"""A cache and a data folder of the test's own, and an HTTP server that misbehaves on request."""

import contextlib
import hashlib
import io
import socket
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mescal.datasets.places import Files

CONTENT = {"numbers.data": b"1,2\n3,4\n" * 3000, "numbers.labels": b"1\n-1\n" * 3000}


def zip_of(members: dict[str, bytes]) -> bytes:
    """A zip archive, in memory; stored without compression, so that it is as long as its members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@dataclass
class Server:
    """A server that answers each request with the next of `answers`, and with the last one for ever."""

    url: str = ""
    answers: list[Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def whole(body: bytes) -> Callable:
    """The body, with its length."""

    def answer(handler: BaseHTTPRequestHandler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def truncated(body: bytes, announced: bool = True) -> Callable:
    """The first half of the body, with the length of the whole or without any."""

    def answer(handler: BaseHTTPRequestHandler):
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])

    return answer


def interrupted(body: bytes) -> Callable:
    """The first half of the body, and then a reset of the connection."""

    def answer(handler: BaseHTTPRequestHandler):
        truncated(body)(handler)
        handler.wfile.flush()
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    return answer


def refused(status: int) -> Callable:
    """An HTTP error."""
    return lambda handler: handler.send_error(status)


@pytest.fixture
def answers() -> dict[str, Callable]:
    """The ways in which the server can answer."""
    return {
        "whole": whole(zip_of({f"folder/{name}": content for name, content in CONTENT.items()})),
        "truncated": truncated(zip_of(CONTENT)),
        "truncated without a length": truncated(zip_of(CONTENT), announced=False),
        "interrupted": interrupted(zip_of(CONTENT)),
        "other content": whole(zip_of(CONTENT | {"numbers.labels": b"other"})),
        "member missing": whole(zip_of({"numbers.data": CONTENT["numbers.data"]})),
        "a page of text": whole(b"<html>please log in</html>"),
        "not found": refused(404),
        "busy": refused(503),
    }


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.requests.append(self.path)
            state.answers[min(len(state.requests), len(state.answers)) - 1](self)

        def log_message(self, format: str, *args):
            pass

        def finish(self):
            with contextlib.suppress(OSError):  # a connection that was reset on purpose cannot be flushed
                super().finish()

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            pass  # the client may be gone on purpose

    with Quiet(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.url = f"http://127.0.0.1:{running.server_port}"
        monkeypatch.setenv("MESCAL_DATA_URL", state.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield state
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache, and no data folder."""
    monkeypatch.delenv("MESCAL_DATA", raising=False)
    monkeypatch.setenv("MESCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def files() -> Files:
    """Two small files, published in one archive."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    return Files(checksums, archive="static/public/0/numbers.zip")


@pytest.fixture
def content() -> dict[str, bytes]:
    return CONTENT
