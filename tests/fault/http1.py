"""A little HTTP/1.1 over asyncio: a client with a persistent connection, and parsing of requests."""
import asyncio
import json

HEAD_MAX = 64 * 1024


class Lost(Exception):
    """The connection broke; the request may have been carried out."""


async def read_head(reader):
    """First line and lower-case headers; None when the peer closed between messages."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as e:
        if e.partial:
            raise
        return None
    lines = raw.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name:
            headers[name.strip().lower()] = value.strip()
    return lines[0], headers


async def read_body(reader, headers):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
            if size == 0:
                return b"".join(parts)
    return await reader.readexactly(int(headers.get("content-length", "0")))


class Client:
    """One connection to the daemon, reopened when it broke."""

    def __init__(self, address, key, timeout=20):
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.key = key
        self.timeout = timeout
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def _exchange(self, raw):
        if not self.writer:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port, limit=1 << 22)
        self.writer.write(raw)
        head = await read_head(self.reader)
        if head is None:
            raise ConnectionResetError("closed without an answer")
        status = int(head[0].split(" ", 2)[1])
        return status, head[1], await read_body(self.reader, head[1])

    async def request(self, method, path, body=None, key=None):
        """(status, headers, parsed JSON or None). `key` is an idempotency key. Raises Lost."""
        data = json.dumps(body).encode() if body is not None else b""
        once = f"Idempotency-Key: {key}\r\n" if key else ""
        raw = (f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nx-api-key: {self.key}\r\n{once}"
               f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data
        try:
            status, headers, answer = await asyncio.wait_for(self._exchange(raw), self.timeout)
        except (OSError, EOFError, ValueError, IndexError, asyncio.TimeoutError, asyncio.LimitOverrunError) as e:
            self.close()
            raise Lost(f"{type(e).__name__}: {e}") from e
        except asyncio.CancelledError:
            self.close()
            raise
        if headers.get("connection", "").lower() == "close":
            self.close()
        try:
            return status, headers, json.loads(answer) if answer else None
        except ValueError as e:
            raise AssertionError(f"{method} {path} answered {status} with invalid JSON: "
                                 f"{answer[:300]!r}") from e

    async def get(self, path):
        status, _, answer = await self.request("GET", path)
        if status != 200:
            raise AssertionError(f"GET {path} answered {status}: {answer}")
        return answer
