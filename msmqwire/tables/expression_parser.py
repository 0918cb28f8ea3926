"""Expressions over columns as text: ``kind == 'UserMessage' and label like 'order%' and body_size > 1000``.

A recursive descent, whose precedence is that of SQL: ``or``, ``and``, ``not``, comparison. docs/columns.md
describes the language for users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, NoReturn

import pyarrow as pa

from msmqwire.analysis.dissection.times import parse_time
from msmqwire.errors import InvalidArgument
from msmqwire.tables.columns import BINARY, BOOL, BY_NAME, TEXT, TEXTS, Column, unknown_column
from msmqwire.tables.expression import (
    Absent,
    Compared,
    Conjunction,
    Containing,
    Disjunction,
    Expression,
    Matching,
    Node,
    Not,
    OneOf,
)
from msmqwire.tables.possible_values import (
    EQUALITIES,
    PATH,
    not_compared,
    refuse_impossible,
    refuse_impossible_pattern,
)

NESTING_MAX: Final = 100
"""Levels of parentheses and of ``not``."""
_INT64_MAX: Final = (1 << 63) - 1
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<bytes>[xX](?:'[^']*'|"[^"]*"))
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<number>-?(?:0[xX][0-9a-fA-F]+|[0-9]+)(?![0-9A-Za-z_.]))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol>==|!=|<>|<=|>=|&&|\|\||[<>=!(),])
    )""",
    re.VERBOSE,
)
_SAME: Final = {"=": "==", "<>": "!=", "&&": "and", "||": "or", "!": "not"}
_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
_KEYWORDS: Final = frozenset(
    {"and", "or", "not", "in", "like", "ilike", "matches", "contains", "is", "null", "true", "false"}
)


class InvalidExpression(InvalidArgument):
    """An expression that can't be read, or that compares a column with an impossible value.

    Attributes:
        why: the fault.
        position: the character at which it is, from 0.
        near: the right names most like a wrong one.
    """

    def __init__(self, why: str, position: int = 0, near: Iterable[str] = ()) -> None:
        super().__init__(f"{why} (at character {position + 1})", path=PATH, near=near)
        self.why, self.position = why, position


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse_expression(text: str) -> Expression:
    """Parse an expression over the columns of `msmqwire.tables.COLUMNS`. Raises InvalidExpression."""
    parser = _Parser(text)
    root = parser.disjunction()
    if parser.token.kind != "end":
        parser.fail(f"{parser.token.text} is not expected here")
    return Expression(text, root)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            rest = text[position:].lstrip()
            why = "a text without its end" if rest[0] in "'\"" else f"{rest[:12]!r} is not understood"
            raise InvalidExpression(why, len(text) - len(rest))
        kind, value = match.lastgroup, match[match.lastgroup]
        if kind == "word" and value.lower() in _KEYWORDS:
            kind, value = "keyword", value.lower()
        elif value in _SAME:
            value = _SAME[value]
            kind = "keyword" if value in _KEYWORDS else kind
        tokens.append(_Token(kind, value, match.start(match.lastgroup)))
        position = match.end()
    return [*tokens, _Token("end", "the end", end)]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = self._depth = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._next]

    def fail(self, why: str, token: _Token | None = None) -> NoReturn:
        raise InvalidExpression(why, (token or self.token).position)

    def _take(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self._next += 1
        return token

    def _taken(self, *texts: str) -> _Token | None:
        """Take the next token if it is one of these keywords or symbols."""
        if self.token.kind in ("keyword", "symbol") and self.token.text in texts:
            return self._take()
        return None

    def _expect(self, text: str) -> None:
        if not self._taken(text):
            self.fail(f"{text} is expected instead of {self.token.text}")

    def disjunction(self) -> Node:
        parts = [self._conjunction()]
        while self._taken("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _conjunction(self) -> Node:
        parts = [self._negation()]
        while self._taken("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _negation(self) -> Node:
        self._depth += 1
        if self._depth > NESTING_MAX:
            self.fail(f"more than {NESTING_MAX} levels")
        if self._taken("not"):
            node: Node = Not(self._negation())
        elif self._taken("("):
            node = self.disjunction()
            self._expect(")")
        else:
            node = self._test()
        self._depth -= 1
        return node

    def _test(self) -> Node:
        token = self.token
        column = self._column()
        if column.type != TEXTS and (comparison := self._taken(*_COMPARISONS)):
            if column.type == BOOL and comparison.text not in ("==", "!="):
                self.fail(f"{column.name} is true or false", comparison)
            if comparison.text in EQUALITIES:
                return Compared(column, comparison.text, self._possible_operand(column))
            return Compared(column, comparison.text, self._operand(column))
        if self._taken("is"):
            negated = self._taken("not")
            self._expect("null")
            return Not(Absent(column)) if negated else Absent(column)
        if column.type == TEXTS:
            self.fail(not_compared(column), token)
        negated = self._taken("not")
        for keyword, read in self._tests().items():
            if self._taken(keyword):
                node = read(column)
                return Not(node) if negated else node
        if negated:
            self.fail(f"in, like, matches or contains is expected instead of {self.token.text}")
        if column.type == BOOL:
            return Compared(column, "==", True)
        self.fail(f"a comparison of {token.text} is expected instead of {self.token.text}")

    def _tests(self) -> dict[str, Callable[[Column], Node]]:
        return {
            "in": self._one_of,
            "like": self._like,
            "ilike": lambda column: self._like(column, ignore_case=True),
            "matches": self._matches,
            "contains": self._contains,
        }

    def _column(self) -> Column:
        token = self._take()
        if token.kind != "word":
            self.fail(f"the name of a column is expected instead of {token.text}", token)
        column = BY_NAME.get(token.text)
        if column is None:
            self._refuse(unknown_column(token.text, PATH), token)
        return column

    def _one_of(self, column: Column) -> Node:
        self._expect("(")
        operands = [self._possible_operand(column)]
        while self._taken(","):
            operands.append(self._possible_operand(column))
        self._expect(")")
        return OneOf(column, tuple(operands))

    def _matches(self, column: Column) -> Node:
        token = self.token
        node = Matching(column, self._text_for(column), regular=True)
        try:
            node.judge(lambda _: "")
        except pa.ArrowInvalid as exc:
            self.fail(str(exc), token)
        return self._possible_pattern(node, token)

    def _like(self, column: Column, *, ignore_case: bool = False) -> Node:
        token = self.token
        return self._possible_pattern(
            Matching(column, self._text_for(column), ignore_case=ignore_case), token
        )

    def _contains(self, column: Column) -> Node:
        if column.type != BINARY:
            token = self.token
            return self._possible_pattern(Containing(column, (self._text_for(column),)), token)
        token = self._take()
        if token.kind == "bytes":
            part = self._bytes(token)
        elif token.kind == "text":
            part = _unquoted(token.text).encode()
        else:
            self.fail(f"a text, or bytes as x'4c494f52', is expected instead of {token.text}", token)
        if token.kind == "bytes" or not part:
            return Containing(column, (part,))
        return Containing(column, (part, _unquoted(token.text).encode("utf-16-le")))

    def _possible_operand(self, column: Column) -> Any:
        token = self.token
        value = self._operand(column)
        try:
            refuse_impossible(column, value)
        except InvalidArgument as exc:
            self._refuse(exc, token)
        return value

    def _possible_pattern(self, node: Matching | Containing, token: _Token) -> Node:
        try:
            refuse_impossible_pattern(node)
        except InvalidArgument as exc:
            self._refuse(exc, token)
        return node

    def _refuse(self, error: InvalidArgument, token: _Token) -> NoReturn:
        raise InvalidExpression(error.why, token.position, error.near) from None

    def _text_for(self, column: Column) -> str:
        token = self._take()
        if column.type != TEXT:
            self.fail(f"{column.name} is not text", token)
        if token.kind != "text":
            self.fail(f"a text in quotes is expected instead of {token.text}", token)
        return _unquoted(token.text)

    def _bytes(self, token: _Token) -> bytes:
        try:
            return bytes.fromhex(token.text[2:-1])
        except ValueError:
            self.fail("no hex digits", token)

    def _operand(self, column: Column) -> Any:
        token = self._take()
        if pa.types.is_timestamp(column.type):
            return self._time(column, token)
        if column.type == BOOL:
            if token.text in ("true", "false"):
                return token.text == "true"
            self.fail(f"true or false is expected instead of {token.text}", token)
        if column.type == TEXT:
            if token.kind == "text":
                return _unquoted(token.text)
            self.fail(f"a text in quotes is expected instead of {token.text}", token)
        if column.type == BINARY:
            if token.kind == "bytes":
                return self._bytes(token)
            self.fail(f"bytes as x'4c494f52' are expected instead of {token.text}", token)
        if token.kind != "number":
            self.fail(f"a whole number is expected instead of {token.text}", token)
        number = int(token.text, 0) if "x" in token.text.lower() else int(token.text)
        bits = column.type.bit_width
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            self.fail(f"{column.name} has {bits} bits", token)
        return number

    def _time(self, column: Column, token: _Token) -> int:
        """Return a time in the unit of the column: ISO 8601 text, or seconds since 1970."""
        if token.kind not in ("text", "number"):
            self.fail(f"a time as '2026-03-01T12:00:00' is expected instead of {token.text}", token)
        try:
            time_ns = parse_time(_unquoted(token.text) if token.kind == "text" else token.text)
        except ValueError:
            self.fail(f"{token.text} is not a time", token)
        if abs(time_ns) > _INT64_MAX:
            self.fail(f"{token.text} is outside of the range of times", token)
        return time_ns if column.type.unit == "ns" else time_ns // 1_000_000_000


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
