"""Running shell commands, in the foreground and as jobs."""

import atexit
import codecs
import os
import signal
import subprocess
import threading
import time

_groups = set()
LIMIT = 30000
GRACE = 1.2


def kill_group(pgid, sig=signal.SIGKILL):
    try:
        os.killpg(pgid, sig)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def kill_all():
    """At the end of the process: nothing that was started lives on."""
    for pgid in list(_groups):
        kill_group(pgid)
    _groups.clear()


atexit.register(kill_all)


def _prune():
    for pgid in list(_groups):
        if not kill_group(pgid, 0):
            _groups.discard(pgid)


class Buffer:
    """Output as text; of long output only what will be shown is kept."""

    def __init__(self):
        self.lock = threading.Lock()
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.head = ""
        self.tail = ""
        self.total = 0
        self.frozen = False

    def feed(self, data, final=False):
        with self.lock:
            if self.frozen:
                return
            text = self.decoder.decode(data, final)
            self.total += len(text)
            room = LIMIT - len(self.head)
            if room > 0:
                self.head += text[:room]
            self.tail = (self.tail + text)[-LIMIT:]

    def show(self, freeze=False):
        with self.lock:
            if freeze:
                self.frozen = True
            # an unfinished character at the end is shown as a replaced one
            rest = self.decoder.getstate()[0]
            extra = "\ufffd" if rest else ""
            total = self.total + len(extra)
            if total <= LIMIT:
                return self.head + extra
            half = LIMIT // 2
            return (self.head[:half] + f"\n[{total - LIMIT} characters left out]\n" + (self.tail + extra)[-half:])


def with_last(text, last):
    if not text:
        return last
    return text + ("" if text.endswith("\n") else "\n") + last


def environment(settings):
    env = dict(os.environ)
    env.pop("HARNESS_API_KEY", None)
    env.update(settings.get("env"))
    return env


class Process:
    """One shell with readers for its outputs."""

    def __init__(self, command, cwd, env, merged=True, stdin=None):
        self.out = Buffer()
        self.err = Buffer()
        self.proc = subprocess.Popen(
            ["/bin/sh", "-c", command], cwd=cwd, env=env, start_new_session=True,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merged else subprocess.PIPE)
        self.pgid = self.proc.pid
        _prune()
        _groups.add(self.pgid)
        self.readers = [self._reader(self.proc.stdout, self.out)]
        if not merged:
            self.readers.append(self._reader(self.proc.stderr, self.err))
        if stdin is not None:
            threading.Thread(target=self._feed, args=(stdin,), daemon=True).start()

    def _feed(self, data):
        try:
            self.proc.stdin.write(data)
            self.proc.stdin.close()
        except (OSError, ValueError):
            pass

    @staticmethod
    def _reader(pipe, buffer):
        def work():
            while True:
                try:
                    data = os.read(pipe.fileno(), 65536)
                except (OSError, ValueError):
                    break
                if not data:
                    break
                buffer.feed(data)
            try:
                pipe.close()
            except OSError:
                pass

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def wait(self, seconds):
        """True when the shell ended within the time."""
        try:
            self.proc.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def drain(self, seconds):
        end = time.monotonic() + seconds
        for reader in self.readers:
            reader.join(max(0, end - time.monotonic()))

    def kill(self):
        kill_group(self.pgid)
        try:
            self.proc.wait(1)
        except subprocess.TimeoutExpired:
            pass

    def status(self):
        code = self.proc.returncode
        return 128 - code if code < 0 else code


def run_foreground(command, cwd, env, timeout):
    """The result text of the tool `bash`; OSError or ValueError when no shell starts."""
    process = Process(command, cwd, env)
    try:
        ended = process.wait(timeout)
        if ended:
            process.drain(GRACE)
            last = f"[exit {process.status()}]"
        else:
            process.kill()
            process.drain(0.5)
            last = f"[timed out after {timeout} s]"
    except BaseException:
        process.kill()
        raise
    return with_last(process.out.show(freeze=True), last)


def run_hook(command, cwd, env, timeout, data):
    """(status or None for a time-out, standard output, standard error)"""
    process = Process(command, cwd, env, merged=False, stdin=data)
    process.out.limit = None
    try:
        ended = process.wait(timeout)
        if ended:
            process.drain(GRACE)
        else:
            process.kill()
            process.drain(0.5)
    except BaseException:
        process.kill()
        raise
    return (process.status() if ended else None, process.out.show(True), process.err.show(True))


class Job:
    def __init__(self, command, cwd, env):
        self.process = Process(command, cwd, env)
        self.killed = False

    def output(self):
        process = self.process
        code = process.proc.poll()
        if self.killed:
            last = "[killed]"
        elif code is None:
            last = "[running]"
        else:
            process.drain(0.2)
            last = f"[exit {process.status()}]"
        return with_last(process.out.show(), last)

    def kill(self):
        process = self.process
        if process.proc.poll() is None:
            self.killed = True
            kill_group(process.pgid, signal.SIGTERM)
            end = time.monotonic() + 2
            while time.monotonic() < end:
                process.proc.poll()
                if not kill_group(process.pgid, 0):
                    break
                time.sleep(0.02)
            else:
                kill_group(process.pgid)
            process.wait(1)
            process.drain(0.5)
        return self.output()


class Jobs:
    """The jobs of one harness process."""

    def __init__(self):
        self.jobs = {}

    def start(self, command, cwd, env):
        job = Job(command, cwd, env)
        name = f"j{len(self.jobs) + 1}"
        self.jobs[name] = job
        return name
