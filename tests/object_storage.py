"""A small server that speaks as much of S3 as pyarrow asks for. It takes every signature, and can fail in some ways."""

import hashlib
import io
import os
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

WRONG = "wrong-key"
"""The key that the server refuses."""
KEYS = {"AWS_ACCESS_KEY_ID": "a-key-for-tests", "AWS_SECRET_ACCESS_KEY": "a-secret-for-tests"}
NO_OTHERS = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
"""Else the client looks for more in files of its own, and asks the network."""


class Server(ThreadingHTTPServer):
    """Buckets of objects by name, in memory. An upload in parts appears when it ends, as in S3.

    ``on_request`` is told of each request before it is answered: the method, the bucket and key, and the query.
    ``on_answer`` is told of each body before it is sent.
    Of an object whose name is in ``cut``, every answer ends in the middle.
    """

    daemon_threads = True

    def __init__(self, *buckets):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.parts, self.uploads = {name: {} for name in buckets}, {}, count()
        self.asked, self.cut = [], set()
        self.on_request, self.on_answer = lambda method, path, query: None, lambda body: None

    @property
    def options(self):
        """What is added to an address to reach this server."""
        return f"?endpoint_override=127.0.0.1:{self.server_port}&scheme=http"

    def handle_error(self, request, client_address):
        """Say nothing: who asked may be gone, or was killed."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Else each body waits 40 ms until the client has acknowledged the headers."""

    def _asked(self):
        where = urlsplit(self.path)
        self.query = {name: own[0] for name, own in parse_qs(where.query, keep_blank_values=True).items()}
        self.bucket, _, self.key = unquote(where.path).lstrip("/").partition("/")
        is_chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
        body = _chunks(self.rfile) if is_chunked else self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, f"{self.bucket}/{self.key}"))
        self.server.on_request(self.command, f"{self.bucket}/{self.key}", self.query)
        if WRONG in self.headers.get("Authorization", ""):
            self._fail(403, "InvalidAccessKeyId")
        elif self.bucket not in self.server.objects:
            self._fail(404, "NoSuchBucket")
        else:
            self.known = self.server.objects[self.bucket]
            return _chunks(io.BytesIO(body)) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body
        return None

    def do_HEAD(self):
        """Tell of an object."""
        if self._asked() is not None:
            self._tell(self.known.get(self.key))

    def do_GET(self):
        """List a folder, or send some of an object."""
        if self._asked() is None:
            return
        if not self.key:
            self._list()
        else:
            self._tell(self.known.get(self.key), self.headers.get("Range"))

    def do_PUT(self):
        """Take an object, or a part of one."""
        if (body := self._asked()) is None:
            return
        if "uploadId" in self.query:
            self.server.parts[self.query["uploadId"]][int(self.query["partNumber"])] = body
        else:
            self.known[self.key] = body
        self._answer(200, headers={"ETag": _tag(body)})

    def do_POST(self):
        """Begin an upload, or end one."""
        if self._asked() is None:
            return
        if "uploads" in self.query:
            own = str(next(self.server.uploads))
            self.server.parts[own] = {}
            names = f"<Bucket>{self.bucket}</Bucket><Key>{escape(self.key)}</Key><UploadId>{own}</UploadId>"
            self._xml("InitiateMultipartUploadResult", names)
        else:
            parts = self.server.parts.pop(self.query["uploadId"])
            self.known[self.key] = b"".join(parts[number] for number in sorted(parts))
            self._xml("CompleteMultipartUploadResult", f"<ETag>{_tag(self.known[self.key])}</ETag>")

    def _list(self):
        prefix, stop = self.query.get("prefix", ""), self.query.get("delimiter")
        found = sorted(name for name in self.known if name.startswith(prefix))
        inner = {name: name[len(prefix) :].partition(stop)[0] for name in found if stop and stop in name[len(prefix) :]}
        entries = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.known[name])}</Size></Contents>"
            for name in found
            if name not in inner
        )
        for folder in dict.fromkeys(inner.values()):
            entries += f"<CommonPrefixes><Prefix>{escape(prefix + folder)}/</Prefix></CommonPrefixes>"
        self._xml("ListBucketResult", f"<IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>{entries}")

    def _tell(self, data, asked=None):
        if data is None:
            self._fail(404, "NoSuchKey")
            return
        first, last = 0, len(data) - 1
        if asked:
            first, last = (int(number) for number in re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups())
        if first >= max(len(data), 1):
            self._fail(416, "InvalidRange")
            return
        own = data[first : last + 1]
        headers = {"ETag": _tag(data), "Last-Modified": "Thu, 19 Nov 2026 00:00:00 GMT"}
        self._answer(206 if asked else 200, own, headers, is_cut=self.key in self.server.cut)

    def _fail(self, status, code):
        self._xml("Error", f"<Code>{code}</Code><Message>{code} of {WRONG}</Message>", status)

    def _xml(self, name, inside, status=200):
        self._answer(status, f"<?xml version='1.0'?><{name}>{inside}</{name}>".encode(), {})

    def _answer(self, status, body=b"", headers=None, is_cut=False):
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.server.on_answer(body)
            self.wfile.write(body[: len(body) // 2] if is_cut else body)
            self.close_connection = is_cut

    def log_message(self, *arguments):
        """Say nothing."""


def _tag(data):
    return f'"{hashlib.sha256(data).hexdigest()}"'


def _chunks(file):
    """Return what comes in chunks, each with its size before it, up to the empty line after the last."""
    found = []
    while size := int(file.readline().split(b";")[0], 16):
        found.append(file.read(size))
        file.readline()
    while file.readline().strip():
        pass
    return b"".join(found)


@contextmanager
def storage(*buckets):
    """Run a server for as long as it is needed."""
    server = Server(*buckets)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
