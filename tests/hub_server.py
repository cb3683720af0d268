"""A hub of one's own: as much of the protocol as downloading a model takes."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

SHA, OLDER_SHA = "a" * 40, "b" * 40


class Hub:
    """One model, `someone/tiny`, at two revisions; and everything that was asked for."""

    def __init__(self, files, older, status=200):
        self.revisions = {SHA: files, OLDER_SHA: older}
        self.names = {"main": SHA, "v1": OLDER_SHA} | {sha: sha for sha in self.revisions}
        self.status = status
        self.asked = []

    def answer(self, path):
        """Status, headers and body for a path."""
        self.asked.append(path)
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        model, rest = parts[2 * api : 2 * api + 2], parts[2 * api + 2 :]
        if self.status != 200:
            return self.status, {}, b""
        if model not in (["someone", "tiny"], ["openai-community", "gpt2"]):
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "not found"}, b"{}"
        sha = self.names.get(rest[1] if len(rest) > 1 else "main")
        if sha is None:
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "not found"}, b"{}"
        files = self.revisions[sha]
        if api:
            return 200, {"Content-Type": "application/json"}, _about(rest, sha, files)
        name = "/".join(rest[2:])
        if name not in files:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": sha}, b""
        tag = hashlib.sha256(files[name]).hexdigest()
        return 200, {"ETag": f'"{tag}"', "X-Repo-Commit": sha}, files[name]


def _about(rest, sha, files):
    if rest[:1] == ["tree"]:
        entries = [
            {"type": "file", "path": name, "size": len(files[name]), "oid": "0" * 40}
            for name in files
        ]
        return json.dumps(entries).encode()
    siblings = [{"rfilename": name} for name in files]
    return json.dumps({"id": "someone/tiny", "sha": sha, "siblings": siblings}).encode()


@contextmanager
def serving(hub):
    """The hub's address, for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
