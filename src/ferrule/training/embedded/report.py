"""The figures of an evaluation: shares with their intervals by kind, as JSON and as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from ferrule.training.embedded.scoring import ModelAnswer, Score
from ferrule.training.synth.grammar import KINDS

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_Z = 1.959964
"""The standard deviations on either side of the mean that contain 95% of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of right answers. The interval is Wilson's (1927), of 95%, which works for small n and near 0 and 1."""

    right: int
    n: int

    @property
    def share(self) -> float:
        """Between 0 and 1; 0 of nothing."""
        return self.right / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Its lower and upper bound, between 0 and 1."""
        if not self.n:
            return 0.0, 1.0
        spread = _Z * _Z / self.n
        middle = (self.share + spread / 2) / (1 + spread)
        reach = _Z * sqrt(self.share * (1 - self.share) / self.n + spread / (4 * self.n)) / (1 + spread)
        # At the ends, the exact value, which rounding would miss.
        low = 0.0 if self.right == 0 else middle - reach
        return low, 1.0 if self.right == self.n else middle + reach

    def as_json(self, counted: str = "right") -> dict[str, Any]:
        """How many, under the name of what is counted, `share`, `low` and `high`."""
        low, high = self.interval
        return {counted: self.right, "share": round(self.share, 5), "low": round(low, 5), "high": round(high, 5)}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.share:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


@dataclass(frozen=True, slots=True)
class KindFigures:
    """The figures of one kind, or of all."""

    kind: str
    n: int
    right_call: Share
    right_answer: Share
    both: Share

    def as_json(self) -> dict[str, Any]:
        """By name."""
        shares = {name: getattr(self, name).as_json() for name in ("right_call", "right_answer", "both")}
        return {"kind": self.kind, "n": self.n, **shares}


@dataclass(frozen=True, slots=True)
class FigureTable:
    """The figures of one set of questions: a row for each of its kinds, and the total."""

    name: str
    rows: tuple[KindFigures, ...]
    total: KindFigures

    def as_json(self) -> dict[str, Any]:
        """By name."""
        rows = [row.as_json() for row in self.rows]
        return {"name": self.name, "rows": rows, "total": self.total.as_json()}


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A question with a wrong call or answer; the turns of a conversation are in `prompts`."""

    id: str
    kind: str
    prompts: tuple[str, ...]
    answers: tuple[ModelAnswer, ...]
    score: Score


@dataclass(frozen=True, slots=True)
class WithheldFigures:
    """How many of the wrong and of the right answers to a set of questions are withheld."""

    name: str
    wrong: Share
    right: Share

    def as_json(self) -> dict[str, Any]:
        """By name; `n` is how many wrong or right answers there are."""
        shares = {"wrong": self.wrong, "right": self.right}
        return {"name": self.name} | {key: {"n": one.n, **one.as_json("withheld")} for key, one in shares.items()}


@dataclass(frozen=True, slots=True)
class Withheld:
    """What a threshold withholds, by set of questions, and of all."""

    threshold: float
    rows: tuple[WithheldFigures, ...]
    total: WithheldFigures

    def as_json(self) -> dict[str, Any]:
        """By name."""
        rows = [row.as_json() for row in self.rows]
        return {"threshold": self.threshold, "rows": rows, "total": self.total.as_json()}


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """The result of `ferrule eval embedded`. `withheld` is None for a model that withholds nothing."""

    model: str
    seed: int
    tables: tuple[FigureTable, ...]
    failures: tuple[WrongAnswer, ...] = ()
    withheld: Withheld | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON values; `failures` and `withheld` only if there are any."""
        tables = [table.as_json() for table in self.tables]
        failures = {"failures": [asdict(failure) for failure in self.failures]} if self.failures else {}
        withheld = {"withheld": self.withheld.as_json()} if self.withheld is not None else {}
        return {"model": self.model, "seed": self.seed, "tables": tables, **withheld, **failures}


def make_table(name: str, scored: Iterable[tuple[str, Score]]) -> FigureTable:
    """The figures of scores by kind: the templates' kinds in their order, then others, and last several turns."""
    by_kind: dict[str, list[Score]] = {kind: [] for kind in KINDS}
    for kind, score in scored:
        by_kind.setdefault(kind, []).append(score)
    by_kind["turns"] = by_kind.pop("turns", [])
    rows = tuple(_make_row(kind, scores) for kind, scores in by_kind.items() if scores)
    return FigureTable(name, rows, _make_row("all", [score for scores in by_kind.values() for score in scores]))


def _make_row(kind: str, scores: list[Score]) -> KindFigures:
    n = len(scores)
    return KindFigures(
        kind,
        n,
        Share(sum(score.right_call for score in scores), n),
        Share(sum(score.right_answer for score in scores), n),
        Share(sum(score.is_right for score in scores), n),
    )


def make_rich_tables(report: ScoreReport) -> Iterator[RichTable]:
    """Each table of a report for rich's console: per cent, with the 95% interval in parentheses."""
    from rich.table import Table as Shown

    for table in report.tables:
        shown = Shown(title=table.name)
        shown.add_column("kind")
        for heading in ("n", "right call", "right answer", "both"):
            shown.add_column(heading, justify="right")
        for row in (*table.rows, table.total):
            cells = (str(row.n), str(row.right_call), str(row.right_answer), str(row.both))
            shown.add_row(row.kind, *cells, end_section=row is table.rows[-1])
        yield shown
    if report.withheld is not None:
        yield _make_withheld_table(report.withheld)


def _make_withheld_table(withheld: Withheld) -> RichTable:
    """Withheld answers are neither right nor wrong here; the other tables say what they would have been."""
    from rich.table import Table as Shown

    shown = Shown(title=f"withheld below a confidence of {withheld.threshold:.3g}")
    shown.add_column("questions")
    for heading in ("right", "wrong", "withheld", "of wrong ones, withheld", "of right ones, withheld"):
        shown.add_column(heading, justify="right")
    for row in (*withheld.rows, withheld.total):
        counts = (row.right.n - row.right.right, row.wrong.n - row.wrong.right, row.right.right + row.wrong.right)
        cells = (*map(str, counts), str(row.wrong), str(row.right))
        shown.add_row(row.name, *cells, end_section=row is withheld.rows[-1])
    return shown


def format_wrong_answers(failures: Iterable[WrongAnswer]) -> Iterator[str]:
    """Wrong answers as plain text, one paragraph each: requests, calls, results and replies."""
    for failure in failures:
        wrong = [name for name in ("call", "answer") if not getattr(failure.score, f"right_{name}")]
        yield f"{failure.id} ({failure.kind}): wrong {' and '.join(wrong)}"
        for prompt, answer in zip(failure.prompts, failure.answers, strict=False):
            yield f"  > {prompt!r}"
            yield from (f"    {call.text}  →  {call.result}" for call in answer.calls)
            yield f"    {answer.reply!r}" + ("" if answer.is_finished else " (never ended)")
        yield ""
