"""What the file tools changed: kept so that it can be taken back and shown."""

import difflib
import os
import stat

from .base import HarnessError, atomic_write, critical, digest, is_inside, json_bytes, parse_json, reason


def state_of(path):
    """(state, content): None for a missing file."""
    try:
        info = os.lstat(path)
    except OSError:
        return None, None
    if stat.S_ISLNK(info.st_mode):
        return {"kind": "link", "target": os.readlink(path)}, None
    if not stat.S_ISREG(info.st_mode):
        return {"kind": "other"}, None
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError:
        return {"kind": "other"}, None
    return {"kind": "file", "sha": digest(data), "mode": stat.S_IMODE(info.st_mode)}, data


def content_key(state):
    if state is None:
        return None
    return state["kind"], state.get("sha"), state.get("target")


class Changes:
    """The log of one session, in memory and under its checkpoint directory."""

    def __init__(self, folder):
        self.folder = folder
        self.log = None
        self.blobs = {}

    def copy(self, folder):
        other = Changes(folder)
        self._load()
        other.log = [dict(e) for e in self.log]
        other.blobs = dict(self.blobs)
        other.fallback = self.folder
        return other

    fallback = None

    def _load(self):
        if self.log is not None:
            return
        self.log = []
        try:
            with open(os.path.join(self.folder, "changes.jsonl"), "rb") as handle:
                lines = handle.read().split(b"\n")
        except OSError:
            return
        for line in lines:
            try:
                value = parse_json(line.decode("utf-8", "surrogateescape"))
            except ValueError:
                continue
            if "done" in value:
                for entry in self.log:
                    if entry["n"] in value["done"]:
                        entry["done"] = True
            elif "undone" in value:
                for entry in self.log:
                    if entry["turn"] in value["undone"]:
                        entry["undone"] = True
            else:
                self.log.append(value)
        # a process that was killed may have left a change announced but not made
        kept = []
        for entry in self.log:
            if not entry.get("done"):
                now = content_key(state_of(entry["path"])[0])
                if now == content_key(entry["before"]) and now != content_key(entry["after"]):
                    continue
            kept.append(entry)
        self.log = kept

    def _append(self, value):
        try:
            os.makedirs(self.folder, exist_ok=True)
            with critical():
                fd = os.open(os.path.join(self.folder, "changes.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    os.write(fd, json_bytes(value) + b"\n")
                finally:
                    os.close(fd)
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {self.folder}: {reason(error)}") from None

    def announce(self, turn, changes, save):
        """`changes`: (path, before, content before, after). Returns numbers for `done`."""
        self._load()
        numbers = []
        for path, before, data, after in changes:
            n = os.urandom(6).hex()
            if data is not None and before.get("sha"):
                self._keep(before["sha"], data, save)
            entry = {"n": n, "turn": turn, "path": path, "before": before, "after": after}
            if save:
                self._append(entry)
            self.log.append(entry)
            numbers.append(n)
        return numbers

    def _keep(self, sha, data, save):
        if not save:
            self.blobs[sha] = data
            return
        path = os.path.join(self.folder, "blobs", sha)
        if os.path.exists(path):
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            atomic_write(path, data)
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {path}: {reason(error)}") from None

    def done(self, numbers, save):
        for entry in self.log:
            if entry["n"] in numbers:
                entry["done"] = True
        if save and numbers:
            self._append({"done": numbers})

    def withdraw(self, numbers):
        """The changes were not made after all."""
        self.log = [e for e in self.log if e["n"] not in numbers]

    def _blob(self, sha):
        if sha in self.blobs:
            return self.blobs[sha]
        for folder in (self.folder, self.fallback):
            if folder:
                try:
                    with open(os.path.join(folder, "blobs", sha), "rb") as handle:
                        return handle.read()
                except OSError:
                    continue
        raise HarnessError(1, f"internal: cannot read {self.folder}: {sha} is missing")

    def _files(self, turns):
        """path -> entries of these turns, only files that count as changed."""
        files = {}
        for entry in self.log:
            if entry["turn"] in turns and not entry.get("undone"):
                files.setdefault(entry["path"], []).append(entry)
        return {p: e for p, e in files.items() if content_key(e[0]["before"]) != content_key(e[-1]["after"])}

    def last_turn(self):
        self._load()
        for turn in dict.fromkeys(e["turn"] for e in reversed(self.log)):
            if self._files({turn}):
                return turn
        return None

    def take_back(self, turns, cwd, save):
        """(lines, conflicts); nothing is done when there are conflicts."""
        self._load()
        files = self._files(turns)
        conflicts = []
        for path, entries in files.items():
            broken = any(content_key(b["before"]) != content_key(a["after"]) for a, b in zip(entries, entries[1:]))
            if broken or content_key(state_of(path)[0]) != content_key(entries[-1]["after"]):
                conflicts.append(shown(path, cwd))
        if conflicts:
            return [], sorted(conflicts, key=os.fsencode)
        lines = []
        with critical():
            for path in sorted(files, key=lambda p: os.fsencode(shown(p, cwd))):
                self._restore(path, files[path][0]["before"])
                word = "removed" if files[path][0]["before"] is None else "restored"
                lines.append(f"{word} {shown(path, cwd)}")
            for entry in self.log:
                if entry["turn"] in turns:
                    entry["undone"] = True
            if save and any(e["turn"] in turns for e in self.log):
                self._append({"undone": sorted(turns)})
        return lines, []

    def _restore(self, path, before):
        try:
            if before is None:
                os.unlink(path)
            elif before["kind"] == "link":
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(before["target"], path)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                atomic_write(path, self._blob(before["sha"]), before["mode"])
        except OSError as error:
            raise HarnessError(1, f"internal: cannot write {path}: {reason(error)}") from None

    def diff(self, cwd):
        self._load()
        first = {}
        for entry in self.log:
            if entry["path"] not in first and content_key(entry["before"]) != content_key(entry["after"]):
                first[entry["path"]] = entry["before"]
        out = []
        for path in sorted(first, key=lambda p: os.fsencode(shown(p, cwd))):
            before = first[path]
            now, data = state_of(path)
            if content_key(before) == content_key(now) or (before and before["kind"] == "link"):
                continue
            if now is not None and now["kind"] != "file":
                now, data = None, None
                if before is None:
                    continue
            old = _lines(self._blob(before["sha"])) if before else []
            new = _lines(data) if now else []
            name = shown(path, cwd)
            out.append("--- " + (f"a/{name}" if before else "/dev/null"))
            out.append("+++ " + (f"b/{name}" if now else "/dev/null"))
            body = list(difflib.unified_diff(old, new, n=3))[2:]
            for line in body:
                if line.endswith("\n"):
                    out.append(line[:-1])
                else:
                    out.append(line)
                    out.append("\\ No newline at end of file")
        return "\n".join(out)


def _lines(data):
    parts = data.decode("utf-8", "replace").split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return lines + ([parts[-1]] if parts[-1] else [])


def shown(path, cwd):
    return os.path.relpath(path, cwd) if is_inside(path, cwd) else path
