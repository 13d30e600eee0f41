"""bash and job: commands of the model, in the foreground and in the background."""

import os
import select
import signal
import threading
import time

from .. import processes
from ..errors import ToolError
from ..interrupts import held

POLITE_WAIT_S = 2.0


def bash(context, command, timeout_s=None, background=False):
    limit_s = timeout_s if timeout_s is not None else context.settings["bash_timeout_s"]
    try:
        if background:
            return context.jobs.start(command, context.roots.workspace, context.shell_env())
        return processes.run_command(command, context.roots.workspace, context.shell_env(), limit_s)
    except processes.CannotRun as error:
        raise ToolError(str(error)) from None


def job(context, id, action):
    running = context.jobs.get(id)
    if action == "kill":
        running.kill()
    return running.output()


class Jobs:
    """The background commands of this process; `processes` ends them with it."""

    def __init__(self):
        self.jobs = {}

    def start(self, command, cwd, env) -> str:
        job_id = f"j{len(self.jobs) + 1}"
        with held():
            self.jobs[job_id] = Job(command, cwd, env)
        return f"[job {job_id} started]"

    def get(self, job_id):
        if job_id not in self.jobs:
            raise ToolError(f'unknown job "{job_id}"; known jobs: {", ".join(self.jobs) or "none"}')
        return self.jobs[job_id]


class Job:
    """One background command; a thread takes in what it writes, so that it never waits for a reader."""

    def __init__(self, command, cwd, env):
        self.process = processes.spawn(command, cwd, env)
        self.pipe = self.process.stdout.fileno()
        os.set_blocking(self.pipe, False)
        self.capture = processes.Capture()
        self.lock = threading.Lock()
        self.killed = False
        threading.Thread(target=self._take_in, daemon=True).start()

    def output(self) -> str:
        status = self.process.poll()
        with self.lock:
            processes.drain(self.pipe, self.capture)
            text = self.capture.text()
        if self.killed:
            last = "[killed]"
        else:
            last = "[running]" if status is None else processes.exit_line(status)
        return processes.with_last_line(text, last)

    def kill(self):
        """End the process group, politely at first; a job that has ended is left alone."""
        if self.process.poll() is not None:
            return
        self.killed = True
        deadline = time.monotonic() + POLITE_WAIT_S
        processes.signal_group(self.process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            self.process.poll()
            if not processes.is_alive(self.process.pid):
                return
            time.sleep(0.01)
        processes.kill_group(self.process)

    def _take_in(self):
        is_open = True
        while is_open:
            select.select([self.pipe], [], [])
            with self.lock:
                is_open = processes.drain(self.pipe, self.capture)
