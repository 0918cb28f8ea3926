"""A parser of JSON that keeps the values read so far, its position, and the memory that they take."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from msmqwire.bodies import plain
from msmqwire.bodies.body import Plain, Problem
from msmqwire.bodies.limits import DICT_COST, ITEM_COST, LIST_COST, VALUE_COST, Budget, LimitExceeded
from msmqwire.errors import MalformedBody

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TEXT: Final = re.compile(r'[^"\\\x00-\x1f]*')
_WORDS: Final = {"true": True, "false": False, "null": None}
_CONSTANTS: Final = {"NaN": "NaN", "Infinity": "INF", "-Infinity": "-INF"}
_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_UNICODE: Final = re.compile(r"u([0-9a-fA-F]{4})")
_WORD: Final = re.compile(r"-?[A-Za-z]+")
_PROBLEMS_MAX: Final = 100
_PATH_MAX: Final = 200
_MEMBER_COST: Final = 3 * ITEM_COST

_Frame: TypeAlias = "tuple[Any, str]"  # the container that is open, and the name that it is at


class _Fault(Exception):
    """The end of JSON."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


class Careful:
    """One reading of a text."""

    def __init__(self, text: str, budget: Budget) -> None:
        """Begin at the start of a text."""
        self._text, self._budget = text, budget
        self._problems: list[Problem] = []
        self._stack: list[_Frame] = []
        self._at = 0

    def read(self) -> tuple[Plain, tuple[Problem, ...]]:
        """Return the value and its faults. Raises MalformedBody if there is none at all."""
        root: list[Plain] = []
        try:
            self._read(root)
            end = self._after_space(self._at)
            if end < len(self._text):
                raise _Fault("there is more after the value", end)
        except _Fault as exc:
            if not root:
                raise MalformedBody(f"not well-formed JSON: {exc.why}", offset=self._offset(exc.at)) from None
            self._problem(f"not well-formed JSON: {exc.why}", exc.at)
        except LimitExceeded as exc:
            self._problem(exc.why, self._at)
            if not root:
                root.append(None)
        return root[0], tuple(self._problems)

    def _read(self, root: list[Plain]) -> None:
        """Read one value, with a stack of its own in place of recursion."""
        text, stack = self._text, self._stack
        into: Any = root
        name = ""
        while True:
            self._at = self._after_space(self._at)
            first = text[self._at : self._at + 1]
            if first in {"{", "["}:
                if len(stack) >= self._budget.depth:
                    raise LimitExceeded(f"more than {self._budget.depth} objects and arrays deep")
                self._budget.records()
                self._budget.spend(DICT_COST if first == "{" else LIST_COST)
                inner: Any = {} if first == "{" else []
                self._put(into, name, inner, self._at)
                stack.append((into, name))
                into, name = inner, ""
                self._at = self._after_space(self._at + 1)
                if text[self._at : self._at + 1] != ("}" if first == "{" else "]"):
                    name = self._name(into)
                    continue
            else:
                start = self._at
                self._put(into, name, self._scalar(first), start)
                if into is root:
                    return
            # After a value: leave closed containers, until there is another one.
            while True:
                self._at = self._after_space(self._at)
                mark = text[self._at : self._at + 1]
                if mark == ("}" if isinstance(into, dict) else "]"):
                    self._at += 1
                    into, name = stack.pop()
                    if into is root:
                        return
                elif mark == ",":
                    self._at += 1
                    name = self._name(into)
                    break
                else:
                    end = "}" if isinstance(into, dict) else "]"
                    raise _Fault(f"expected a comma or {end}, got {mark or 'the end'!r}", self._at)

    def _put(self, into: Any, name: str, value: Plain, at: int) -> None:
        if isinstance(into, list):
            if self._stack:
                self._budget.items(1)
            into.append(value)
            return
        if name in into:
            self._problem(f"{name!r:.80} is there twice; the last one is kept", at, name)
        self._budget.spend(_MEMBER_COST)
        into[name] = value

    def _name(self, into: Any) -> str:
        """Return the name of the member that follows, if the container has names."""
        if isinstance(into, list):
            return ""
        self._at = self._after_space(self._at)
        if self._text[self._at : self._at + 1] != '"':
            got = self._text[self._at : self._at + 1] or "the end"
            raise _Fault(f"expected a name in quotation marks, got {got!r}", self._at)
        name = plain.member(self._string())
        self._at = self._after_space(self._at)
        if self._text[self._at : self._at + 1] != ":":
            raise _Fault("expected a colon after a name", self._at)
        self._at += 1
        return name

    def _scalar(self, first: str) -> Plain:
        if first == '"':
            return self._string()
        number = _NUMBER.match(self._text, self._at)
        if number is not None and number.end() > self._at and not self._text.startswith("-I", self._at):
            from msmqwire.bodies.json.reading import exact

            self._at = number.end()
            self._budget.spend(VALUE_COST)
            value = exact(number[0])
            if isinstance(value, dict):
                self._budget.spend(DICT_COST)
                self._budget.text(len(number[0]))
            return value
        word = _WORD.match(self._text, self._at)
        found = word[0] if word else ""
        if found in _WORDS:
            self._at += len(found)
            return _WORDS[found]
        if found in _CONSTANTS:
            self._problem(f"{found} is not a value of JSON", self._at)
            self._budget.spend(DICT_COST)
            self._at += len(found)
            return {plain.FLOAT: _CONSTANTS[found]}
        raise _Fault(f"expected a value, got {found[:20] or first or 'the end'!r}", self._at)

    def _string(self) -> str:
        """Read a text; a half of a surrogate pair is replaced, since no encoding has it."""
        start = at = self._at + 1
        text = self._text
        parts: list[str] = []
        while True:
            run = _TEXT.match(text, at)
            if run is not None and run.end() > at:
                parts.append(run[0])
                at = run.end()
            mark = text[at : at + 1]
            if mark == '"':
                break
            if mark != "\\":
                raise _Fault("a text is not ended" if not mark else f"{mark!a} in a text", at)
            escape = text[at + 1 : at + 2]
            if escape in _ESCAPES and escape:
                parts.append(_ESCAPES[escape])
                at += 2
                continue
            code = _UNICODE.match(text, at + 1)
            if code is None:
                raise _Fault(f"{text[at : at + 2]!r} is not an escape", at)
            parts.append(chr(int(code[1], 16)))
            at = code.end()
            if len(parts) > 4096:
                parts = ["".join(parts)]
        self._budget.text(at - start)
        self._at = at + 1
        whole = "".join(parts)
        try:
            whole.encode()
        except UnicodeEncodeError:
            joined = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            if "\ufffd" in joined and "\ufffd" not in whole:
                self._problem("a half of a surrogate pair is not a character", start)
            return joined
        return whole

    def _after_space(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space else at

    def _problem(self, why: str, at: int, name: str = "") -> None:
        if len(self._problems) < _PROBLEMS_MAX:
            self._problems.append(Problem(why, self._path(name), self._offset(at)))

    def _path(self, name: str = "") -> str:
        path = ".".join(entry for _, entry in self._stack if entry)
        whole = f"{path}.{name}" if path and name else path or name
        return whole[-_PATH_MAX:]

    def _offset(self, at: int) -> int:
        return len(self._text[:at].encode())
