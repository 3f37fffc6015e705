# SPDX-License-Identifier: MIT
"""What the project wants of a workload, and whether one result reaches it."""
from typing import NamedTuple, Optional


class Goal(NamedTuple):
    """kind: "ratio" (to the better peer, at least), "share" (of the limit `of`, at least), "below" (the figure itself, at
    most), "peers" (better than every one of them), "memory" (least resident memory of all)."""
    kind: str
    wanted: float = 1.0
    stretch: Optional[float] = None
    of: str = ""
    unit: str = ""
    scale: float = 1.0

    def text(self):
        if self.kind == "ratio":
            return "%.3g times%s" % (self.wanted, "" if self.stretch is None else " (stretch %.3g)" % self.stretch)
        if self.kind == "share":
            return "%.0f%% of %s" % (100 * self.wanted, self.of)
        if self.kind == "below":
            return "below %.3g %s" % (self.wanted * self.scale, self.unit)
        return {"peers": "ahead of all peers", "memory": "least memory"}[self.kind]

    def reached(self, result):
        """None where there is nothing to compare with."""
        if self.kind in ("ratio", "peers"):
            ratios = [found[1] for found in result["ratio"].values()]
            return min(ratios) >= self.wanted if ratios else None
        if self.kind == "share":
            found = result["shares"].get(self.of, {}).get("rung")
            return found[1] >= self.wanted if found else None
        if self.kind == "below":
            return result["engines"]["rung"][1] < self.wanted
        own, others = result["peak"].get("rung"), [peak for name, peak in result["peak"].items() if name != "rung" and peak]
        return own[1] < min(peak[1] for peak in others) if own and others else None


def judge(alternatives, result):
    """One wish: it is reached if one of its alternatives is."""
    found = [goal.reached(result) for goal in alternatives]
    if not any(found) and None in found:  # what is not known may be what reaches it
        return None
    return {"text": " or ".join(goal.text() for goal in alternatives), "reached": any(found),
            "ratio": next((goal.wanted for goal in alternatives if goal.kind == "ratio"), None)}


def judge_all(goals, result):
    found = [judge(alternatives, result) for alternatives in goals]
    return [one for one in found if one]


def words(result):
    """The goals of a result as one cell of a table."""
    return "; ".join("%s: %s" % (goal["text"], "reached" if goal["reached"] else "missed") for goal in result["goals"]) or "-"
