"""The change log of file tools: what `/undo`, `/rewind` and `/diff` need, kept under `checkpoints/ID`.

Each change is logged before it is made, with the content before it, so that a run that is killed in
the middle can be taken back too. `log.jsonl` holds the entries, `blobs/` the contents by their digest.
"""

import json
import os
import stat

from .errors import HarnessError
from .interrupts import held
from .tools.files import digest, replace_file


class State:
    """What stands at a path: nothing, a link, or a file with content and mode."""

    def __init__(self, kind, value="", mode=0):
        self.kind = kind  # none, link, file
        self.value = value  # target of a link, digest of a file
        self.mode = mode

    def as_json(self):
        return [self.kind, self.value, self.mode]

    def same_content(self, other) -> bool:
        return (self.kind, self.value) == (other.kind, other.value)


NOTHING = State("none")


def present_state(path: str):
    """The state of a path now, and its content."""
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            return State("link", os.readlink(path)), b""
        if not stat.S_ISREG(info.st_mode):
            return State("other"), b""
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING, b""
    except OSError:
        return State("other"), b""
    return State("file", digest(data), stat.S_IMODE(info.st_mode)), data


class Change:
    def __init__(self, turn, path, before, planned):
        self.turn = turn
        self.path = path
        self.before = before
        self.planned = planned
        self.after = None  # until the change has been made

    def result(self) -> "State":
        return self.after or self.planned

    def is_as_left(self) -> bool:
        """Tell whether the file is as the tool left it; a killed run may have left it at either side."""
        present = present_state(self.path)[0]
        if self.after is None:
            return present.same_content(self.planned) or present.same_content(self.before)
        return present.same_content(self.after)


class Refused(Exception):
    """Somebody else changed these files since."""

    def __init__(self, paths):
        super().__init__()
        self.paths = paths


class ChangeLog:
    """The changes of one session."""

    def __init__(self, folder: str, session):
        self.folder = folder
        self.session = session
        self.changes = []
        self.taken_back = set()  # turns
        self.blobs = {}  # contents of this process; those of earlier ones are on disk
        self._read()

    # Logging, called by the file tools around each change.

    def before(self, path, new_data):
        """Log a change that is about to be made; `new_data` is None when the file is to be removed."""
        state, data = present_state(path)
        planned = NOTHING if new_data is None else State("file", digest(new_data))
        change = Change(self.session.last_turn_key(), path, state, planned)
        if state.kind == "file":
            self._keep(state.value, data)
        self.changes.append(change)
        self._write({"turn": change.turn, "path": path, "before": state.as_json(), "planned": planned.as_json()})

    def after(self, path):
        change = next(change for change in reversed(self.changes) if change.path == path)
        change.after = present_state(path)[0]
        self._write({"path": path, "after": change.after.as_json()})

    # Taking back.

    def last_changing_turn(self):
        passed = set()
        for change in reversed(self.changes):
            if change.turn not in passed and self._changed_files([change.turn]):
                return change.turn
            passed.add(change.turn)
        return None

    def take_back(self, turns) -> list:
        """Put files back to what they were before these turns; return pairs of verb and path."""
        changed = self._changed_files(turns)
        conflicts = [path for path, changes in changed.items() if not are_undisturbed(changes)]
        if conflicts:
            raise Refused(sorted(conflicts))
        done = []
        with held():
            for path, changes in sorted(changed.items()):
                before = changes[0].before
                self._restore(path, before)
                if path in self.session.seen:
                    self.session.saw(path, "")  # the model knows an older content
                done.append(("removed" if before.kind == "none" else "restored", path))
            self.taken_back |= set(turns)
            if changed:
                self._write({"taken_back": sorted(turns)})
        return done

    def _changed_files(self, turns) -> dict:
        """The changes of these turns by path; files that are at the end as they were are left out."""
        found = {}
        for change in self.changes:
            if change.turn in turns and change.turn not in self.taken_back:
                found.setdefault(change.path, []).append(change)
        return {path: changes for path, changes in found.items() if not changes[-1].result().same_content(changes[0].before)}

    def first_contents(self):
        """For each path that was changed: the bytes before the first change, None when there was no file."""
        first = {}
        for change in self.changes:
            first.setdefault(change.path, change.before)
        return {path: self._content(state) if state.kind == "file" else None for path, state in first.items()}

    def _restore(self, path, state):
        if state.kind == "file":
            replace_file(path, self._content(state), state.mode)
        else:
            if os.path.lexists(path):
                os.unlink(path)
            if state.kind == "link":
                os.symlink(state.value, path)

    # Storage.

    def _keep(self, name, data):
        self.blobs[name] = data
        if not self.session.saving:
            return
        path = os.path.join(self.folder, "blobs", name)
        if not os.path.exists(path):
            try:
                replace_file(path, data, 0o600)
            except OSError as error:
                raise HarnessError(f"internal: cannot write {path}: {error.strerror}") from None

    def _content(self, state) -> bytes:
        if state.value in self.blobs:
            return self.blobs[state.value]
        with open(os.path.join(self.folder, "blobs", state.value), "rb") as file:
            return file.read()

    def _write(self, entry):
        if not self.session.saving:
            return
        path = os.path.join(self.folder, "log.jsonl")
        try:
            os.makedirs(self.folder, exist_ok=True)
            with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise HarnessError(f"internal: cannot write {path}: {error.strerror}") from None

    def _read(self):
        try:
            with open(os.path.join(self.folder, "log.jsonl"), encoding="utf-8") as file:
                lines = file.readlines()
        except OSError:
            return
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if "before" in entry:
                self.changes.append(Change(entry["turn"], entry["path"], State(*entry["before"]), State(*entry["planned"])))
            elif "after" in entry:
                for change in reversed(self.changes):
                    if change.path == entry["path"]:
                        change.after = State(*entry["after"])
                        break
            else:
                self.taken_back |= set(entry.get("taken_back", []))


def are_undisturbed(changes) -> bool:
    """Tell whether nobody else changed a file between these changes or after them."""
    between = all(one.result().same_content(later.before) for one, later in zip(changes, changes[1:], strict=False))
    return between and changes[-1].is_as_left()
