# SPDX-License-Identifier: MIT
"""Bar plots as plain SVG: one row for each workload, one bar for each engine, a whisker from the lowest to the highest."""
from xml.sax.saxutils import escape

COLOURS = ("#1f6feb", "#9aa4b2", "#c9a227", "#7a5195")
INK, PALE, GRID, GOAL = "#1b1f24", "#57606a", "#e4e8ec", "#cf4b2f"
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"
RIGHT, TOP, BAR, GAP, WIDTH = 70, 76, 15, 14, 900
LETTER, NUMBER = 6.9, 34  # widths of a letter of a label and of a figure, in pixels


def _nice(value):
    """The round number at or above: 1, 2, 2.5 or 5 times a power of ten."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.9999)


def _number(value):
    return "%.0f" % value if value >= 100 else "%.3g" % value


def _text(x, y, words, size=13, colour=INK, anchor="start", weight="normal"):
    return "<text x='%.1f' y='%.1f' font-size='%d' fill='%s' text-anchor='%s' font-weight='%s'>%s</text>" % (
        x, y, size, colour, anchor, weight, escape(words))


class Bars:
    """rows: [(label, [Spread or None for each series], goal or None)]; Spread is (low, middle, high, ...)."""

    def __init__(self, title, unit, series, rows, note=""):
        self.title, self.unit, self.series, self.rows, self.note = title, unit, series, rows, note
        most = max([spread[2] for _, spreads, _ in rows for spread in spreads if spread] + [goal for _, _, goal in rows if goal] + [1e-12])
        self.step = _nice(most / 5)
        self.top = self.step * (int(most / self.step) + 1)
        self.left = 24 + LETTER * max((len(label) for label, _, _ in rows), default=0)
        self.row_height = len(series) * BAR + GAP
        self.bottom = TOP + len(rows) * self.row_height

    def x(self, value):
        return self.left + (WIDTH - self.left - RIGHT) * value / self.top

    def _frame(self):
        yield "<rect width='%d' height='%d' fill='#ffffff'/>" % (WIDTH, self.bottom + 50)
        yield _text(16, 26, self.title, 16, weight="bold")
        at = 16.0
        for colour, name in zip(COLOURS, self.series):
            yield "<rect x='%.1f' y='40' width='12' height='12' fill='%s'/>" % (at, colour)
            yield _text(at + 18, 51, name, 12)
            at += 40 + 7.5 * len(name)
        if any(goal for _, _, goal in self.rows):
            yield "<line x1='%.1f' y1='38' x2='%.1f' y2='54' stroke='%s' stroke-width='2'/>" % (at + 4, at + 4, GOAL)
            yield _text(at + 12, 51, "goal", 12)
        value = 0.0
        while value <= self.top * 1.0001:
            yield "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='%s'/>" % (self.x(value), TOP - 6, self.x(value), self.bottom, GRID)
            yield _text(self.x(value), self.bottom + 16, _number(value) if value else "0", 11, PALE, "middle")
            value += self.step
        yield _text(self.x(self.top / 2), self.bottom + 36, self.unit, 12, PALE, "middle")
        if self.note:
            yield _text(WIDTH - 16, 51, self.note, 11, PALE, "end")

    def _row(self, index, label, spreads, goal):
        y = TOP + index * self.row_height
        yield _text(self.left - 10, y + len(spreads) * BAR / 2 + 4.5, label, 12, anchor="end")
        for i, spread in enumerate(spreads):
            if not spread:
                continue
            low, middle, high = spread[:3]
            top = y + i * BAR
            yield "<rect x='%.1f' y='%.1f' width='%.1f' height='%d' fill='%s'/>" % (
                self.left, top + 1, max(self.x(middle) - self.left, 0.5), BAR - 2, COLOURS[i])
            yield "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='1.5'/>" % (
                self.x(low), top + BAR / 2, self.x(high), top + BAR / 2, INK)
            at = self.x(high) + 6
            if goal and at - 4 < self.x(goal) < at + NUMBER:  # the figure steps aside for the mark
                at = self.x(goal) + 6
            yield _text(at, top + BAR / 2 + 4, _number(middle), 11)
        if goal:
            yield "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='2'/>" % (
                self.x(goal), y - 2, self.x(goal), y + len(spreads) * BAR + 2, GOAL)

    def svg(self):
        lines = ["<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' %s>" % (WIDTH, self.bottom + 50, FONT),
                 "<title>%s</title>" % escape(self.title), *self._frame()]
        for index, (label, spreads, goal) in enumerate(self.rows):
            lines += self._row(index, label, spreads, goal)
        return "\n".join(lines + ["</svg>", ""])
