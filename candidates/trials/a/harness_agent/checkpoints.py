"""File changes of the tools, kept so that they can be taken back."""

import os
import secrets
import stat

from .util import HarnessError, compact, digest, loads, reason_of, replace_file

# The state of a path: None (absent), {"file": HASH, "mode": N} or {"link": TARGET}.


def same(a, b) -> bool:
    """Content only; modes and times do not count."""
    if a is None or b is None:
        return a is b
    return (a.get("file"), a.get("link")) == (b.get("file"), b.get("link"))


class Checkpoints:
    def __init__(self, folder: str, exists: bool):
        self.folder = folder
        self.saving = True
        self.entries: list[dict] = []
        self.blobs: dict[str, bytes] = {}  # of changes that are not stored
        if exists:
            self._read()

    @property
    def log(self):
        return os.path.join(self.folder, "log.jsonl")

    def _read(self):
        try:
            with open(self.log, "rb") as f:
                lines = f.read().split(b"\n")
        except OSError:
            return
        for line in lines:
            try:
                record = loads(line.decode("utf-8"))
            except ValueError:
                continue
            if isinstance(record, dict):
                self._apply(record)

    def _apply(self, record):
        op = record.get("op")
        if op == "change":
            self.entries.append({**record, "done": False, "undone": False})
        elif op in ("done", "abort"):
            for entry in self.entries:
                if entry["n"] == record["n"]:
                    entry["done"] = op == "done"
                    entry["undone"] = entry["undone"] or op == "abort"
                    entry["aborted"] = op == "abort"
        elif op == "undone":
            for entry in self.entries:
                if entry["turn"] in record["turns"]:
                    entry["undone"] = True

    def _log(self, record):
        if self.saving:
            try:
                os.makedirs(self.folder, exist_ok=True)
                fd = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    os.write(fd, b"\n" + compact(record).encode("utf-8") + b"\n")
                finally:
                    os.close(fd)
            except OSError as e:
                raise HarnessError(1, f"internal: cannot write {self.log}: {reason_of(e)}") from None
        self._apply(record)

    def _keep(self, data: bytes) -> str:
        hash = digest(data)
        if not self.saving:
            self.blobs[hash] = data
            return hash
        path = os.path.join(self.folder, hash)
        try:
            if not os.path.exists(path):
                os.makedirs(self.folder, exist_ok=True)
                replace_file(path, data)
        except OSError as e:
            raise HarnessError(1, f"internal: cannot write {path}: {reason_of(e)}") from None
        return hash

    def content(self, state) -> bytes:
        if state is None:
            return b""
        if "link" in state:
            return os.fsencode(state["link"])
        if state["file"] in self.blobs:
            return self.blobs[state["file"]]
        path = os.path.join(self.folder, state["file"])
        try:
            with open(path, "rb") as f:
                return f.read()
        except OSError as e:
            raise HarnessError(1, f"internal: cannot read {path}: {reason_of(e)}") from None

    @staticmethod
    def now(path: str):
        """The present state of a path and, for a file, its bytes."""
        try:
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                return {"link": os.readlink(path)}, b""
            if not stat.S_ISREG(info.st_mode):
                return {"link": "/dev/null/special"}, b""
            with open(path, "rb") as f:
                data = f.read()
            return {"file": digest(data), "mode": stat.S_IMODE(info.st_mode)}, data
        except OSError:
            return None, b""

    # Recording

    def begin(self, turn: str, path: str, after) -> str:
        """Keeps what a path holds before it gets the content `after` (None: removed)."""
        before, data = self.now(path)
        if before and "file" in before:
            self._keep(data)
        new = None if after is None else {"file": digest(after), "mode": (before or {}).get("mode", 0)}
        n = secrets.token_hex(6)
        self._log({"op": "change", "n": n, "turn": turn, "path": path, "before": before, "after": new})
        return n

    def finish(self, n: str) -> None:
        self._log({"op": "done", "n": n})

    def abort(self, n: str) -> None:
        self._log({"op": "abort", "n": n})

    # Taking back

    def _chains(self, turns) -> dict:
        chains = {}
        for entry in self.entries:
            if entry["turn"] in turns and not entry["undone"]:
                chains.setdefault(entry["path"], []).append(entry)
        out = {}
        for path, chain in chains.items():
            kept = []
            for k, entry in enumerate(chain):
                if not entry["done"]:
                    following = chain[k + 1]["before"] if k + 1 < len(chain) else self.now(path)[0]
                    if same(following, entry["before"]) and not same(entry["before"], entry["after"]):
                        continue  # the process died before the change
                kept.append(entry)
            if kept and not (len(kept) == 1 and same(kept[0]["before"], kept[0]["after"])):
                out[path] = kept
        return out

    def last_turn(self):
        """The newest turn with changes that were not taken back."""
        for entry in reversed(self.entries):
            if not entry["undone"] and self._chains([entry["turn"]]):
                return entry["turn"]
        return None

    def take_back(self, turns) -> tuple[list, list]:
        """(paths in conflict, [(path, restored?)]); with a conflict nothing is changed."""
        chains = self._chains(turns)
        bad = []
        for path, chain in chains.items():
            gaps = any(not same(a["after"], b["before"]) for a, b in zip(chain, chain[1:]))
            if gaps or not same(self.now(path)[0], chain[-1]["after"]):
                bad.append(path)
        if bad:
            return bad, []
        out = []
        for path, chain in chains.items():
            state = chain[0]["before"]
            try:
                if state is None:
                    if os.path.lexists(path):
                        os.unlink(path)
                elif "link" in state:
                    if os.path.lexists(path):
                        os.unlink(path)
                    os.symlink(state["link"], path)
                else:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    replace_file(path, self.content(state), state["mode"])
            except OSError as e:
                raise HarnessError(1, f"internal: cannot write {path}: {reason_of(e)}") from None
            out.append((path, state is not None))
        self._log({"op": "undone", "turns": list(turns)})
        return [], out

    def first_states(self) -> dict:
        """What each path held before the session's first change of it."""
        out = {}
        for entry in self.entries:
            if not entry.get("aborted"):
                out.setdefault(entry["path"], entry["before"])
        return out

    def clone(self, folder: str):
        copy = Checkpoints(folder, False)
        copy.saving = False
        copy.entries = [dict(e) for e in self.entries]
        copy.blobs = dict(self.blobs)
        for entry in copy.entries:
            for state in (entry["before"],):
                if state and "file" in state and state["file"] not in copy.blobs:
                    copy.blobs[state["file"]] = self.content(state)
        return copy
