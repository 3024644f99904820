"""The daemon under attack, and the account of what was tried and what got through."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE = 60  # seconds for what must happen; a slow machine is no failure
HANG_SECONDS = 30  # longer than a refusal takes, shorter than the daemon's own deadline for a request
# asan keeps freed memory for a while, so that it can recognise its use
ASAN = "handle_abort=1:detect_leaks=1:exitcode=99:quarantine_size_mb=16:malloc_context_size=8:allocator_release_to_os_interval_ms=500"


class Trial:
    """One kind of attack: how many inputs, and which of them got through."""

    def __init__(self, name, promise):
        self.name, self.promise = name, promise
        self.tried = 0
        self.through = []
        self.outcomes = {}  # such as 401: how often, to see that the attack arrives
        self.lock = threading.Lock()

    def count(self, n=1):
        with self.lock:
            self.tried += n

    def note(self, outcome):
        with self.lock:
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def got(self, what):
        with self.lock:
            self.through.append(what)

    def expect(self, condition, what):
        if not condition:
            self.got(what)


class Closed(Exception):
    """The connection ended before a whole answer."""


class Target:
    """A daemon on a new directory. Everything it says is searched for the secrets it was given."""

    def __init__(self, binary, config, secrets=(), files=()):
        self.binary = binary
        self.dir = tempfile.mkdtemp(prefix="dragoman-hostile-")
        os.chmod(self.dir, 0o700)
        self.log_path = os.path.join(self.dir, "log.txt")
        self.secrets = [s.encode() for s in secrets]
        self.leaks = []
        self.peak = self.calm = 0
        self.watching = threading.Event()
        for name, text in dict(files).items():
            with open(os.path.join(self.dir, name), "w", encoding="utf-8") as f:
                f.write(text)
        path = os.path.join(self.dir, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        os.chmod(path, 0o600)

    # ---- its life ----

    def start(self):
        env = {k: v for k, v in os.environ.items() if not k.endswith(("_TOKEN", "_API_KEY"))}
        env["ASAN_OPTIONS"], env["UBSAN_OPTIONS"] = ASAN, "print_stacktrace=1"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", self.dir], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=env, preexec_fn=lambda: os.umask(0o077))
        state = os.path.join(self.dir, "state")
        end = time.monotonic() + PATIENCE
        while not os.path.exists(os.path.join(state, "http.addr")):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the daemon did not start: {self.log_tail()}")
            time.sleep(0.02)
        with open(os.path.join(state, "http.addr"), encoding="utf-8") as f:
            host, _, port = f.read().strip().rpartition(":")
        with open(os.path.join(state, "operator.key"), encoding="utf-8") as f:
            self.key = f.read().strip()
        self.address, self.host = (host, int(port)), f"{host}:{port}"
        self.secrets.append(self.key.encode())
        self.calm = self.rss_mb()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self):
        while not self.watching.wait(0.1):
            self.peak = max(self.peak, self.rss_mb())

    def rss_mb(self):
        try:
            with open(f"/proc/{self.process.pid}/statm", encoding="utf-8") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") // (1 << 20)
        except (FileNotFoundError, ProcessLookupError, IndexError):
            return 0

    def log_text(self):
        with open(self.log_path, "rb") as f:
            return f.read()

    def log_tail(self):
        return self.log_text()[-3000:].decode("utf-8", "replace")

    def stop(self, trial, limit_mb):
        """What must hold after every attack: it runs, stops cleanly, and leaked neither memory nor secrets."""
        try:
            status, _, _ = self.ask("GET", "/healthz")
            trial.expect(status == 200, f"/healthz says {status}")
        except (OSError, Closed) as e:
            trial.got(f"the daemon does not answer: {e}")
        self.watching.set()
        self.watcher.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"{self.process.wait()}, hanging at its end"
        log = self.log_text()
        trial.expect(code == 0, f"the daemon ended with {code}: {self.log_tail()}")
        trial.note(f"MB at first {self.calm}, at most {self.peak}; ended with {code}")
        trial.expect(self.peak - self.calm < limit_mb, f"memory grew from {self.calm} to {self.peak} MB")
        for word in (b"AddressSanitizer", b"LeakSanitizer", b"runtime error"):
            trial.expect(word not in log, f"the log has '{word.decode()}': {self.log_tail()}")
        self.look(log, "the log")
        for leak in self.leaks:
            trial.got(leak)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def kill(self):
        self.watching.set()
        if getattr(self, "process", None) and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    # ---- talking to it ----

    def look(self, data, where):
        for secret in self.secrets:
            if secret in data:
                self.leaks.append(f"a secret ({secret[:4].decode()}...) in {where}")

    def connect(self):
        s = socket.create_connection(self.address, timeout=HANG_SECONDS)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def raw(self, data, seconds=HANG_SECONDS):
        """Everything that comes back until the daemon closes; None: it neither answers nor closes."""
        got = b""
        with self.connect() as s:
            s.settimeout(seconds)
            try:
                s.sendall(data)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    got += piece
            except socket.timeout:
                self.look(got, "an answer")
                return None
            except OSError:
                pass  # closed while we were sending
        self.look(got, "an answer")
        return got

    @staticmethod
    def head(method, path, headers):
        return (f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers) + "\r\n").encode(
            "utf-8", "surrogateescape")

    def ask(self, method, path, body=None, key=None, headers=(), trial=None):
        """(status, head, body), on a connection of its own. The status is noted in the trial."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        head = [("Host", self.host), ("Connection", "close"), ("Content-Length", len(data)), *headers]
        if key:
            head.append(("x-api-key", key))
        got = self.raw(self.head(method, path, head) + data, PATIENCE)
        if got is None:
            raise Closed(f"{method} {path} hangs")
        answer = self.parse(got, f"{method} {path}")
        if trial:
            trial.note(answer[0])
        return answer

    @staticmethod
    def parse(got, what="the request"):
        first, _, rest = got.partition(b"\r\n\r\n")
        while first.startswith(b"HTTP/1.1 1"):  # 100 Continue
            first, _, rest = rest.partition(b"\r\n\r\n")
        if not first.startswith(b"HTTP/1."):
            raise Closed(f"no answer to {what}")
        return int(first.split()[1]), first, rest

    def get(self, path, key=None):
        _, _, body = self.ask("GET", path, key=key or self.key)
        return json.loads(body)

    def answers(self, trial, text="are you there", agent=None):
        """A turn of the echo agent, all the way."""
        status, _, body = self.ask("POST", "/v1/chat/completions",
                                   {"model": agent or "echo", "messages": [{"role": "user", "content": text}]},
                                   key=self.key)
        trial.expect(status == 200 and text.encode() in body, f"no turn afterwards: {status} {body[:300]}")
