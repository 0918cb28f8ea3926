"""Packet diagrams as SVG: 32 bits a row, bit 0 on the left, as in RFCs and the specifications.

Solid sides: a fixed size. Wavy sides: a variable size. Dashed: optional. Dotted sides: drawn with fewer
rows than it has. All colours are `currentColor`, so that an inline diagram suits light and dark mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

BITS: Final = 32
COLUMN: Final = 22
ROW: Final = 30
GUTTER: Final = 38  # left of the boxes, for offsets
RULER: Final = 32  # above them, for bit numbers
MARGIN: Final = 8
SMALLEST: Final = 7  # a name that would be smaller is written upwards, in a higher row
UPWARDS: Final = 11
ROWS_MAX: Final = 5  # more whole rows are drawn as 3
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS: Final = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FILE_STYLE: Final = (
    "<style>:root{color:#1f2328;background:#fff}"
    "@media(prefers-color-scheme:dark){:root{color:#e6e6e6;background:#1e2129}}</style>\n"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A field to draw. `bits` is None if its size varies; a `faint` one is reserved or padding."""

    name: str
    note: str = ""
    bits: int | None = None
    optional: bool = False
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A line between two fields, labelled with the part that ends there."""

    text: str


@dataclass(frozen=True, slots=True)
class _Shape:
    """The position of a cell: part of a first row, whole rows, part of a last row."""

    cell: Cell
    top: float
    first: int  # its first column
    last: int  # after its last column; 0 if it ends with a row
    whole: float = 0  # the height of its whole rows
    inside: bool = False  # it lies within one row
    row: float = ROW  # the height of that
    shortened: bool = False

    @property
    def head(self) -> float:
        """The top of the whole rows."""
        return self.top + (ROW if self.first else 0)

    @property
    def foot(self) -> float:
        """The bottom of the whole rows."""
        return self.head + self.whole

    @property
    def label_box(self) -> tuple[float, float, float, float]:
        """x, y, width and height of the part with the most space."""
        if self.inside:
            return self.first * COLUMN, self.top, (self.last - self.first) * COLUMN, self.row
        if self.whole:
            return 0, self.head, BITS * COLUMN, self.whole
        if self.last > BITS - self.first:
            return 0, self.head, self.last * COLUMN, ROW
        return self.first * COLUMN, self.top, (BITS - self.first) * COLUMN, ROW


@dataclass(slots=True)
class _Layout:
    """Places cells one after the other; `row` is the height of rows of cells that lie within one."""

    row: float = ROW
    y: float = 0
    column: int = 0
    offset: int | None = 0  # in bits, while it is fixed
    drawn: list[str] = field(default_factory=list)

    def new_row(self) -> None:
        if self.column:
            self.y, self.column = self.y + self.row, 0

    def mark(self, mark: Mark) -> None:
        self.new_row()
        y, right = self.y + 12, BITS * COLUMN
        width = 6.1 * len(mark.text)
        left = (right - width) / 2 - 8
        self.drawn.append(
            f'<path d="M0 {y:g}H{left:g}M{right - left:g} {y:g}H{right}" stroke-opacity=".6" '
            'stroke-dasharray="8 3 2 3"/>'
        )
        self.drawn.append(_label(mark.text, right / 2, y, 11, SANS, faint=True))
        self.y += 24

    def cell(self, cell: Cell) -> None:
        loose = cell.bits is None or cell.optional
        if cell.optional and cell.bits is not None:
            self.new_row()
        self.number()
        shape = self.shape(cell)
        self.drawn += _draw(shape)
        if shape.inside:
            self.y, self.column = (self.y + self.row, 0) if shape.last == BITS else (self.y, shape.last)
        else:
            self.y, self.column = shape.foot, shape.last
        if cell.optional:
            self.new_row()
        self.offset = None if loose or self.offset is None else self.offset + (cell.bits or 0)

    def shape(self, cell: Cell) -> _Shape:
        if cell.bits is None:
            return _Shape(cell, self.y, self.column, 0, 1.5 * ROW)
        end = self.column + cell.bits
        if end <= BITS:
            return _Shape(cell, self.y, self.column, end, inside=True, row=self.row)
        rows = end // BITS - (1 if self.column else 0)
        shortened = rows > ROWS_MAX
        height = ROW * (3 if shortened else rows)
        return _Shape(cell, self.y, self.column, end % BITS, height, shortened=shortened)

    def number(self) -> None:
        """Draw the offset, left of the row that begins here."""
        if self.offset is not None and not self.column:
            self.drawn.append(
                f'<text x="-8" y="{self.y + ROW / 2:g}" font-size="11" text-anchor="end" '
                f'fill="currentColor" stroke="none" fill-opacity=".7" dy=".35em">{self.offset // 8}</text>'
            )


def diagram(
    cells: Sequence[Cell | Mark],
    *,
    name: str,
    title: str,
    description: str,
    columns: int = BITS,
    offsets: bool = True,
    file: bool = False,
) -> str:
    """Return an SVG for a page or, with `file`, for a file of its own; `name` makes its ids unique."""
    layout = _Layout(ROW if offsets else _row_of_bits(cells), offset=0 if offsets else None)
    for cell in cells:
        if isinstance(cell, Mark):
            layout.mark(cell)
        else:
            layout.cell(cell)
    layout.new_row()
    gutter = GUTTER if offsets else MARGIN
    width, height = gutter + columns * COLUMN + MARGIN, RULER + layout.y + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" '
        f'viewBox="0 0 {width} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc" '
        'style="max-width:100%;height:auto">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>\n'
    )
    body = [
        f'<g transform="translate({gutter} {RULER})" fill="none" stroke="currentColor" font-family="{MONO}">',
        *_ruler(columns),
        *layout.drawn,
        "</g>",
    ]
    return head + (FILE_STYLE if file else "") + "\n".join(body) + "\n</svg>\n"


def _row_of_bits(cells: Sequence[Cell | Mark]) -> float:
    """Return the height of the one row of a word's bits: enough for names that are written upwards."""
    cramped = [
        len(cell.name)
        for cell in cells
        if isinstance(cell, Cell) and _size_across(cell.name, (cell.bits or 0) * COLUMN) < SMALLEST
    ]
    return max([ROW, *(0.61 * UPWARDS * length + 12 for length in cramped)])


def _size_across(text: str, width: float) -> float:
    return min(13.0, (width - 4) / (0.61 * len(text)))


def _ruler(columns: int) -> Iterator[str]:
    yield '<g fill="currentColor" stroke="none" font-size="10" text-anchor="middle" fill-opacity=".7">'
    for bit in range(columns):
        x = (bit + 0.5) * COLUMN
        if bit % 10 == 0:
            yield f'<text x="{x:g}" y="-18">{bit // 10}</text>'
        yield f'<text x="{x:g}" y="-6">{bit % 10}</text>'
    yield "</g>"


def _draw(shape: _Shape) -> Iterator[str]:
    cell = shape.cell
    look = ' stroke-dasharray="6 4"' if cell.optional else ""
    if cell.faint:
        look += ' fill="currentColor" fill-opacity=".08"'
    if shape.shortened:
        right = BITS * COLUMN
        a, b = shape.head + ROW, shape.head + 2 * ROW
        yield f'<path d="M0 {a:g}V{shape.head:g}H{right}V{a:g}M0 {b:g}V{shape.foot:g}H{right}V{b:g}"{look}/>'
        yield f'<path d="M0 {a:g}V{b:g}M{right} {a:g}V{b:g}" stroke-dasharray="1.5 4"/>'
    else:
        yield f'<path d="{_outline(shape)}"{look}/>'
    x, y, width, height = shape.label_box
    middle, centre = x + width / 2, y + height / 2
    size = _size_across(cell.name, width)
    if shape.row > ROW and size < SMALLEST:
        yield _label(cell.name, middle, centre, UPWARDS, MONO, upwards=True)
    elif cell.note and height > ROW:
        yield _label(cell.name, middle, centre - 8, size, MONO)
        size = min(11.0, (width - 8) / (0.56 * len(cell.note)))
        yield _label(cell.note, middle, centre + 9, size, SANS, faint=True)
    else:
        yield _label(cell.name, middle, centre, size, MONO)


def _outline(shape: _Shape) -> str:
    left, right, end = shape.first * COLUMN, BITS * COLUMN, shape.last * COLUMN
    if shape.inside:
        return f"M{left} {shape.top:g}H{end}v{shape.row:g}H{left}Z"
    wavy = shape.cell.bits is None
    path = f"M{left} {shape.top:g}H{right}V{shape.head:g}"
    path += _wave(shape.whole) if wavy else f"V{shape.foot:g}"
    if shape.last:
        path += f"H{end}v{ROW}H0V{shape.foot:g}"
    path += "H0"
    path += _wave(-shape.whole) if wavy else f"V{shape.head:g}"
    return path + f"H{left}Z"


def _wave(height: float) -> str:
    """Return a wavy line down, or up if `height` is negative, with its waves at the same positions."""
    step = height / 4
    signs = (1, -1, 1, -1) if height > 0 else (-1, 1, -1, 1)
    return "".join(f"q{5 * sign} {step / 2:g} 0 {step:g}" for sign in signs)


def _label(
    text: str, x: float, y: float, size: float, family: str, *, faint: bool = False, upwards: bool = False
) -> str:
    look = ' fill-opacity=".75"' if faint else ""
    if upwards:
        look += f' transform="rotate(-90 {x:g} {y:g})"'
    font = f' font-family="{family}"' if family != MONO else ""
    return (
        f'<text x="{x:g}" y="{y:g}" dy=".35em" font-size="{size:.3g}"{font} text-anchor="middle" '
        f'fill="currentColor" stroke="none"{look}>{escape(text)}</text>'
    )
