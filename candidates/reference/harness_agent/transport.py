"""One HTTP POST over a socket: the small part of HTTP/1.1 that a model API needs.

`http.client` would do the same and costs twice the start-up time of everything else here.
"""

import socket

CONNECT_TIMEOUT_S = 30
SILENCE_TIMEOUT_S = 300


class TransportError(Exception):
    """The connection failed, or the reply is cut or is not HTTP."""


class Response:
    """Status and headers of a reply whose body is still to be read."""

    def __init__(self, connection, stream):
        self._connection = connection
        self._stream = stream
        self.status, self.headers = self._read_head()
        if 100 <= self.status < 200:
            self.status, self.headers = self._read_head()

    def body(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self):
        """Yield the body piece by piece as it arrives; a cut body raises."""
        try:
            if "chunked" in self.headers.get("transfer-encoding", "").lower():
                yield from self._chunked()
            elif "content-length" in self.headers:
                yield from self._exactly(self._length())
            else:
                while piece := self._stream.read1(65536):
                    yield piece
        except OSError as error:
            raise TransportError(f"connection lost: {error}") from error
        finally:
            self.close()

    def close(self):
        self._stream.close()
        self._connection.close()

    def _read_head(self):
        line = self._line()
        parts = line.split(None, 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdigit():
            raise TransportError("the reply is not HTTP" if line else "the connection was closed without a reply")
        headers = {}
        while line := self._line():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(parts[1]), headers

    def _line(self) -> str:
        return self._stream.readline(65537).decode("latin-1").rstrip("\r\n")

    def _length(self) -> int:
        text = self.headers["content-length"]
        if not text.isdigit():
            raise TransportError(f"bad content-length {text!r}")
        return int(text)

    def _exactly(self, n_left):
        while n_left:
            piece = self._stream.read1(min(n_left, 65536))
            if not piece:
                raise TransportError("the reply was cut")
            n_left -= len(piece)
            yield piece

    def _chunked(self):
        while True:
            try:
                size = int(self._line().split(";")[0], 16)
            except ValueError:
                raise TransportError("the reply was cut") from None
            if size == 0:
                while self._line():
                    pass
                return
            yield from self._exactly(size)
            self._line()


def post(url: str, headers: dict, body: bytes) -> Response:
    """Send `body` to `url` and return once the head of the reply is there."""
    scheme, host, port, path = split_url(url)
    head = [f"POST {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close", f"Content-Length: {len(body)}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    try:
        connection = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
    except OSError as error:
        raise TransportError(f"cannot connect to {host}:{port}: {error}") from error
    try:
        connection.settimeout(SILENCE_TIMEOUT_S)
        if scheme == "https":
            import ssl

            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        connection.sendall("\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + body)
        return Response(connection, connection.makefile("rb"))
    except OSError as error:
        connection.close()
        raise TransportError(f"connection lost: {error}") from error
    except BaseException:
        connection.close()
        raise


def split_url(url: str):
    """Return scheme, host, port and path; raise ValueError when `url` is not a web address."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("http", "https"):
        raise ValueError(f"not an http address: {url}")
    authority, _, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    if authority.startswith("["):
        host, _, tail = authority[1:].partition("]")
        port = tail.lstrip(":")
    else:
        host, _, port = authority.partition(":")
    if not host or (port and not port.isdigit()):
        raise ValueError(f"not an http address: {url}")
    return scheme, host, int(port or (443 if scheme == "https" else 80)), "/" + path
