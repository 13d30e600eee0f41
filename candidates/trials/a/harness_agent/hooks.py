"""Commands of the user that run at certain moments."""

from dataclasses import dataclass

from .proc import Process, environment
from .util import cut, dumps


@dataclass
class Ended:
    blocked: str = ""  # REASON of exit 2, else empty
    printed: str = ""


def _text(chunks) -> str:
    return b"".join(chunks).decode("utf-8", "replace").strip()


class Hooks:
    def __init__(self, setting: dict, workspace: str, env: dict, console):
        self.setting, self.workspace, self.env, self.console = setting, workspace, env, console

    def _wanted(self, event: str, tool: str):
        for hook in self.setting.get(event, []):
            names = [n.strip() for n in hook.get("match", "").split("|")]
            if not tool or tool in names or hook.get("match", "").strip() in ("", "*"):
                yield hook

    def run(self, event: str, session_id: str, more: dict, tool: str = ""):
        """(REASON of a block or "", what each hook printed)."""
        printed = []
        for hook in self._wanted(event, tool):
            told = {"event": event, "session_id": session_id, "cwd": self.workspace, **more}
            ended = self._one(event, hook, (dumps(told) + "\n").encode("utf-8"))
            if ended.blocked:
                return ended.blocked, printed
            if ended.printed:
                printed.append(ended.printed)
        return "", printed

    def _one(self, event, hook, data) -> Ended:
        limit = hook.get("timeout_s", 10)
        try:
            process = Process(hook["command"], self.workspace, environment(self.env), stdin=data, merge=False)
        except (OSError, ValueError) as e:
            self.console.warning(f"hook {event}: {e}")
            return Ended()
        try:
            in_time = process.wait(limit)
        except BaseException:
            process.kill()
            raise
        if not in_time:
            process.kill()
            self.console.warning(f"hook {event}: timed out after {limit} s")
            return Ended()
        status = process.status()
        if status == 2:
            return Ended(blocked=_text(process.raw_err) or "blocked")
        if status != 0:
            self.console.warning(f"hook {event}: exit {status}")
            return Ended()
        return Ended(printed=_text(process.raw))


def block(event: str, text: str) -> str:
    return f'<hook event="{event}">\n{cut(text, 10000)}\n</hook>'
