"""Commands that the harness starts: their output, their process groups, and how both end."""

import atexit
import codecs
import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager

from .interrupts import held

OUTPUT_LIMIT = 30000
GONE_WAIT_S = 0.5
DRAIN_READS = 64  # of 64 KiB: bounds one look at the pipe of a command that writes without end

_groups = set()  # process groups that may still have members


class CannotRun(Exception):
    """No shell could be started for a command."""


def spawn(command, cwd, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT):
    """Start `/bin/sh -c command` as the head of a process group without a terminal."""
    with held():
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotRun(f"cannot run the command: {error.strerror}") from None
        _groups.add(process.pid)
    return process


def scratch_file():
    """A file without a name and, where the system can, without a place on disk."""
    try:
        return os.fdopen(os.memfd_create("harness"), "w+b")
    except (AttributeError, OSError):
        import tempfile

        return tempfile.TemporaryFile()


def signal_group(group, number) -> bool:
    """Send a signal to a process group; return whether it has members."""
    try:
        os.killpg(group, number)
        return True
    except ProcessLookupError:
        _groups.discard(group)
        return False
    except PermissionError:
        return True


def kill_group(process):
    """Kill a process group and wait until nothing of it lives."""
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + GONE_WAIT_S
    while is_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.005)


def is_alive(group) -> bool:
    """Tell whether a process group has members that are more than a remainder in the process table."""
    if not signal_group(group, 0):
        return False
    try:
        entries = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return True
    for name in entries:
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, _, member_of = file.read().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(member_of) == group and state not in "ZX":
            return True
    return False


def forget_if_gone(process):
    """After the head has ended: an empty group's number may be given away again, so drop it."""
    signal_group(process.pid, 0)


@atexit.register
def kill_everything():
    for group in list(_groups):
        signal_group(group, signal.SIGKILL)


def run_command(command, cwd, env, limit_s) -> str:
    """Run a command to its end or to the time limit; return its output and how it ended."""
    capture = Capture()
    with running(command, cwd, env) as process:
        os.set_blocking(process.stdout.fileno(), False)
        ended = pump(process, capture, time.monotonic() + limit_s)
    with process.stdout:
        drain(process.stdout.fileno(), capture)
    last = exit_line(process.returncode) if ended else f"[timed out after {limit_s} s]"
    return with_last_line(capture.text(), last)


@contextmanager
def running(command, cwd, env, **streams):
    """A command that is killed, with its group, when the block is left before it has ended."""
    process = None
    try:
        with held():
            process = spawn(command, cwd, env, **streams)
        yield process
    finally:
        if process is not None:
            if process.poll() is None:
                kill_group(process)
            forget_if_gone(process)


def pump(process, capture, deadline) -> bool:
    """Copy output until the shell itself ends; children that hold the pipe are not waited for."""
    pipe = process.stdout.fileno()
    open_pipe = True
    while True:
        ended = process.poll() is not None
        open_pipe = open_pipe and drain(pipe, capture)
        if ended:
            return True
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        if open_pipe:
            select.select([pipe], [], [], min(left_s, 0.02))
        else:
            try:
                process.wait(left_s)
            except subprocess.TimeoutExpired:
                return False


def drain(pipe, capture) -> bool:
    """Read what is there; return False at the end of the pipe."""
    for _ in range(DRAIN_READS):
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        capture.add(data)
    return True


def exit_line(status) -> str:
    return f"[exit {status if status >= 0 else 128 - status}]"


def with_last_line(text, last) -> str:
    if text and not text.endswith("\n"):
        text += "\n"
    return text + last


class Capture:
    """Output in a bounded memory: the head and the tail are kept, the middle is counted."""

    def __init__(self):
        self.half = OUTPUT_LIMIT // 2
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.head = ""
        self.tail = ""
        self.n_chars = 0

    def add(self, data):
        text = self.decoder.decode(data)
        self.n_chars += len(text)
        room = self.half - len(self.head)
        self.head += text[:room]
        self.tail += text[room:]
        if len(self.tail) > 8 * self.half:
            self.tail = self.tail[-self.half :]

    def text(self) -> str:
        """The output so far; a character that is not complete is shown as U+FFFD."""
        unfinished = self.decoder.getstate()[0].decode("utf-8", "replace")
        tail = self.tail + unfinished
        n_left_out = self.n_chars + len(unfinished) - 2 * self.half
        if n_left_out <= 0:
            return self.head + tail
        return f"{self.head}\n[{n_left_out} characters left out]\n{tail[-self.half:]}"
