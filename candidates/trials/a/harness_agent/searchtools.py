"""The tools `list`, `glob` and `grep`."""

import os
import re
import stat
import warnings

from .filetools import Refusal, is_binary, lines_of, short
from .globs import compiled
from .paths import Place, in_roots, inside, relative
from .util import name_bytes, reason_of, shown


class Search:
    def __init__(self, workspace: str, roots: list[str], ignore, unread):
        self.workspace = workspace
        self.roots = roots
        self.ignore = ignore
        self.unread = unread  # (text, real) -> whether a deny rule for read matches

    def _base(self, place: Place) -> str:
        """The searched directory as its path is to be printed."""
        return place.text if os.path.realpath(place.text) == place.real and (
            inside(place.text, self.workspace) or not inside(place.real, self.workspace)) else place.real

    def _hidden(self, text: str, real: str, is_dir: bool) -> bool:
        return self.ignore.covers(text, is_dir) or (real != text and self.ignore.covers(real, is_dir))

    def _entries(self, folder: str):
        try:
            with os.scandir(folder) as it:
                return sorted(it, key=lambda e: name_bytes(e.name))
        except OSError:
            return []

    def _directory(self, place: Place) -> None:
        if not os.path.exists(place.real):
            raise Refusal(f"error: no such directory: {place.given}")
        if not os.path.isdir(place.real):
            raise Refusal(f"error: not a directory: {place.given}")

    def list(self, place: Place, depth=1) -> str:
        self._directory(place)
        try:
            os.scandir(place.real).close()
        except OSError as e:
            raise Refusal(f"error: cannot read {place.given}: {reason_of(e)}") from None
        base = self._base(place)
        lines = []

        def walk(rel: str, level: int):
            for entry in self._entries(os.path.join(place.real, rel)):
                name = os.path.join(rel, entry.name)
                folder = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" or self._hidden(os.path.join(base, name), os.path.join(place.real, name), folder):
                    continue
                lines.append(name + ("/" if folder else ""))
                if folder and level < depth:
                    walk(name, level + 1)

        walk("", 1)
        if not lines:
            return "[empty directory]"
        lines.sort(key=name_bytes)
        out = [shown(line) for line in lines[:500]]
        if len(lines) > 500:
            out.append(f"[{len(lines) - 500} more]")
        return "\n".join(out)

    def _files(self, place: Place):
        """(path relative to the searched directory, path to print, real path) of what is not a directory."""
        base = self._base(place)
        stack = [""]
        while stack:
            rel = stack.pop()
            for entry in self._entries(os.path.join(place.real, rel)):
                name = os.path.join(rel, entry.name)
                text = os.path.join(base, name)
                folder = entry.is_dir(follow_symlinks=False)
                if self._hidden(text, os.path.join(place.real, name), folder):
                    continue
                if folder:
                    if entry.name != ".git":
                        stack.append(name)
                elif not (entry.is_symlink() and os.path.isdir(entry.path)):
                    yield name, relative(text, self.workspace), entry.path

    def glob(self, place: Place, pattern: str) -> str:
        self._directory(place)
        regex = compiled(pattern)
        found = [path for rel, path, _ in self._files(place) if regex.fullmatch(rel)]
        if not found:
            return "[no files]"
        found.sort(key=name_bytes)
        out = [shown(p) for p in found[:200]]
        if len(found) > 200:
            out.append(f"[{len(found) - 200} more]")
        return "\n".join(out)

    def grep(self, place: Place, pattern: str, include=None, limit=100) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                regex = re.compile(pattern)
        except Exception as e:
            raise Refusal(f'error: invalid pattern "{pattern}": {e}') from None
        wanted = compiled(include) if include else None
        whole = include and "/" in include

        def fits(rel):
            return wanted is None or wanted.fullmatch(rel if whole else os.path.basename(rel)) is not None

        if not os.path.exists(place.real):
            raise Refusal(f"error: no such file: {place.given}")
        if os.path.isdir(place.real):
            files = [(p, real) for rel, p, real in self._files(place) if fits(rel)]
        else:
            if not stat.S_ISREG(os.stat(place.real).st_mode):
                return "[no matches]"
            name = os.path.basename(place.text)
            with_error = self._data(place.real, place.given)
            if is_binary(with_error):
                raise Refusal(f"error: binary file: {place.given}")
            files = [(relative(self._base(place), self.workspace), place.real)]
            if wanted is not None and not wanted.fullmatch(name):
                files = []
        files.sort(key=lambda f: name_bytes(f[0]))
        out, count = [], 0
        for path, real in files:
            data = self._searchable(path, real)
            if data is None:
                continue
            for n, line in enumerate(lines_of(data)[0], 1):
                if regex.search(line):
                    count += 1
                    if count <= limit:
                        out.append(f"{shown(path)}:{n}:{short(line)}")
        if count > limit:
            out.append(f"[{count - limit} more]")
        return "\n".join(out) or "[no matches]"

    @staticmethod
    def _data(path, given):
        try:
            with open(path, "rb") as f:
                return f.read()
        except OSError as e:
            raise Refusal(f"error: cannot read {given}: {reason_of(e)}") from None

    def _searchable(self, path: str, file: str):
        text = os.path.join(self.workspace, path)
        try:
            real = os.path.realpath(file)
            if not in_roots(real, self.roots) or self.ignore.covers(real) or self.unread(text, real):
                return None
            if not stat.S_ISREG(os.stat(real).st_mode):
                return None
            with open(real, "rb") as f:
                data = f.read()
        except OSError:
            return None
        return None if is_binary(data) else data
