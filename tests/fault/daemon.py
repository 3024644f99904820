"""The daemon on its data directory, over many restarts."""
import asyncio
import json
import mmap
import os
import signal
import struct
import time

from http1 import Client, Lost

START_SECONDS = 60


class Control:
    """struct fault_control of src/base/fault.h, mapped: changes take effect at once."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(b"\0" * mmap.PAGESIZE)
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)

    def set(self, clock_offset_ms=0, fsync_fails=0, disk_full=0):
        self.map[:16] = struct.pack("=qII", clock_offset_ms, fsync_fails, disk_full)

    def close(self):
        self.map.close()
        self.file.close()


class Daemon:
    def __init__(self, binary, directory, config):
        self.binary = binary
        self.dir = directory
        self.state = os.path.join(directory, "state")
        self.log_path = os.path.join(directory, "log.txt")
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        self.write_config(config)
        self.control = Control(os.path.join(directory, "fault.control"))
        self.process = None
        self.up = asyncio.Event()  # set while it answers
        self.address = self.key = None
        self.runs = []  # wall clock of every start

    def write_config(self, config):
        text = config if isinstance(config, str) else json.dumps(config, indent=2)
        path = os.path.join(self.dir, "config.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)

    async def spawn(self, fault=None):
        env = dict(os.environ, DRAGOMAN_FAULT_FILE=self.control.path)
        env.pop("DRAGOMAN_FAULT", None)
        if fault:
            env["DRAGOMAN_FAULT"] = fault
        try:
            os.unlink(os.path.join(self.state, "http.addr"))
        except FileNotFoundError:
            pass
        self.runs.append(time.time())
        with open(self.log_path, "ab") as log:
            log.write(f"--- run {len(self.runs)}, fault {fault or 'none'}\n".encode())
            log.flush()
            self.process = await asyncio.create_subprocess_exec(
                self.binary, "run", self.dir, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    @property
    def alive(self):
        return self.process is not None and self.process.returncode is None

    async def ready(self):
        """True when it answers, False when it exited."""
        path = os.path.join(self.state, "http.addr")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not self.alive:
                return False
            try:
                with open(path, encoding="utf-8") as f:
                    self.address = f.read().strip()
                with open(os.path.join(self.state, "operator.key"), encoding="utf-8") as f:
                    self.key = f.read().strip()
            except FileNotFoundError:
                self.address = None
            if self.address:
                self.up.set()
                return True
            await asyncio.sleep(0.003)
        raise AssertionError(f"the daemon was not ready within {START_SECONDS} s; see {self.log_path}")

    async def start(self, fault=None):
        await self.spawn(fault)
        if not await self.ready():
            raise AssertionError(f"the daemon exited at start with {self.process.returncode}: {self.log_tail()}")

    async def ended(self, seconds):
        """The exit code, or None when it still runs after `seconds`."""
        try:
            await asyncio.wait_for(asyncio.shield(self.process.wait()), seconds)
        except asyncio.TimeoutError:
            return None
        self.up.clear()
        return self.process.returncode

    async def kill(self):
        self.up.clear()
        if self.alive:
            try:
                self.process.send_signal(signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process:
            await self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def client(self):
        return Client(self.address, self.key)

    def log_tail(self, lines=6):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return " | ".join(f.read().splitlines()[-lines:])

    async def why(self, event):
        """The trace report of an event."""
        try:
            return (await self.client().get(f"/api/v2/why/{event}"))["data"]
        except (Lost, AssertionError) as e:
            return {"summary": str(e)}

    async def run_once(self, seconds=60):
        """Runs another process on the same directory: (exit code, output)."""
        process = await asyncio.create_subprocess_exec(
            self.binary, "run", self.dir, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT)
        try:
            said, _ = await asyncio.wait_for(process.communicate(), seconds)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            return None, "it did not exit"
        return process.returncode, said.decode(errors="replace").strip()
