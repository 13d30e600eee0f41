"""Shell commands: their processes, their output, background jobs, and their end."""

import atexit
import codecs
import os
import signal
import subprocess
import threading
import time

HEAD = 15000
LIMIT = 30000


class Output:
    """What a command wrote, cut in the middle without keeping all of it."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.lock = threading.Lock()
        self.head = ""
        self.tail = ""
        self.count = 0

    def feed(self, data: bytes, final=False) -> None:
        with self.lock:
            self._add(self.decoder.decode(data, final))

    def _add(self, text):
        self.count += len(text)
        room = LIMIT - len(self.head)
        if room > 0:
            self.head += text[:room]
        self.tail = (self.tail + text)[-HEAD:]

    def text(self) -> str:
        with self.lock:
            state = self.decoder.getstate()
            rest = "\ufffd" if state[0] else ""
            count = self.count + len(rest)
            if count <= LIMIT:
                return self.head + rest
            tail = (self.tail + rest)[-HEAD:]
            return f"{self.head[:HEAD]}\n[{count - LIMIT} characters left out]\n{tail}"


def with_status(text: str, status: str) -> str:
    if text and not text.endswith("\n"):
        text += "\n"
    return text + status


def group_alive(group: int) -> bool:
    """Whether a process of the group lives; zombies do not count where /proc tells."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    fields = f.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
                return True
    return False


def kill_group(group: int, sig=signal.SIGKILL) -> None:
    try:
        os.killpg(group, sig)
    except (ProcessLookupError, PermissionError):
        pass


_groups = set()  # of this process, as far as something may still live in them


def kill_all() -> None:
    for group in list(_groups):
        kill_group(group)
    _groups.clear()


atexit.register(kill_all)


class Process:
    """A shell in a session and process group of its own."""

    def __init__(self, command: str, cwd: str, env: dict, stdin=None, merge=True):
        self.out = Output()
        self.raw = []  # standard output of a hook
        self.raw_err = []
        feed = subprocess.PIPE if stdin is not None else subprocess.DEVNULL
        self.p = subprocess.Popen(
            ["/bin/sh", "-c", command], cwd=cwd, env=env, stdin=feed, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge else subprocess.PIPE, start_new_session=True, bufsize=0)
        self.group = self.p.pid
        _groups.add(self.group)
        if merge:
            self.readers = [self._thread(self._read_merged)]
        else:
            self.readers = [self._thread(lambda: self._read_raw(self.p.stdout, self.raw)),
                            self._thread(lambda: self._read_raw(self.p.stderr, self.raw_err))]
        if stdin is not None:
            self._thread(lambda: self._feed(stdin))

    def _thread(self, target):
        t = threading.Thread(target=target, daemon=True)
        t.start()
        return t

    def _read_merged(self):
        fd = self.p.stdout.fileno()
        try:
            while data := os.read(fd, 65536):
                self.out.feed(data)
        except OSError:
            pass

    def _read_raw(self, pipe, into):
        size = 0
        try:
            while data := os.read(pipe.fileno(), 65536):
                if size < 4_000_000:
                    into.append(data)
                    size += len(data)
        except OSError:
            pass

    def _feed(self, data):
        try:
            self.p.stdin.write(data)
        except OSError:
            pass
        try:
            self.p.stdin.close()
        except OSError:
            pass

    def wait(self, timeout: float) -> bool:
        """Waits for the shell and shortly for its output; false when the time is over."""
        end = time.monotonic() + timeout
        pause = 0.002
        while self.p.poll() is None:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.05)
        self.settle(0.5)
        if not group_alive(self.group):
            _groups.discard(self.group)
        return True

    def settle(self, seconds: float) -> None:
        """Waits for the end of the output, as far as a child does not hold it open."""
        end = time.monotonic() + seconds
        for t in self.readers:
            t.join(max(0, end - time.monotonic()))

    def kill(self) -> None:
        kill_group(self.group)
        try:
            self.p.wait(1)
        except subprocess.TimeoutExpired:
            pass
        self.settle(0.5)
        _groups.discard(self.group)

    def status(self) -> int:
        code = self.p.returncode
        return 128 - code if code < 0 else code


def environment(extra: dict) -> dict:
    env = dict(os.environ)
    env.pop("HARNESS_API_KEY", None)
    env.update(extra)
    return env


def run_shell(command: str, cwd: str, env: dict, timeout: int) -> str:
    """The text that the `bash` tool returns."""
    process = Process(command, cwd, env)
    try:
        ended = process.wait(timeout)
    except BaseException:
        process.kill()
        raise
    if not ended:
        process.kill()
        return with_status(process.out.text(), f"[timed out after {timeout} s]")
    return with_status(process.out.text(), f"[exit {process.status()}]")


class Job:
    def __init__(self, id: str, command: str, cwd: str, env: dict):
        self.id = id
        self.process = Process(command, cwd, env)
        self.killed = False

    def output(self) -> str:
        process = self.process
        if process.p.poll() is None:
            return with_status(process.out.text(), "[running]")
        process.settle(0.5)
        return with_status(process.out.text(), "[killed]" if self.killed else f"[exit {process.status()}]")

    def kill(self) -> str:
        process = self.process
        if process.p.poll() is None:
            self.killed = True
            kill_group(process.group, signal.SIGTERM)
            end = time.monotonic() + 2
            while time.monotonic() < end:
                process.p.poll()
                if not group_alive(process.group):
                    break
                time.sleep(0.02)
            process.kill()
        return self.output()


class Jobs:
    """The background jobs of one harness process."""

    def __init__(self):
        self.jobs = {}

    def start(self, command, cwd, env) -> Job:
        job = Job(f"j{len(self.jobs) + 1}", command, cwd, env)
        self.jobs[job.id] = job
        return job


JOBS = Jobs()
