"""From which confidence on a call is made: the choice of the threshold, and what it withholds.

A question counts as withheld if the model is less sure than that of one of its calls. The model is asked with every
call made, so that it is known whether a withheld answer would have been right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ferrule.embedded.withholding import CONFIDENCE_FILE
from ferrule.errors import SettingsError
from ferrule.training.embedded.asking import ScoredQuestion
from ferrule.training.embedded.report import Share, Withheld, WithheldFigures

MOST_RIGHT_WITHHELD = 50
"""At most one in so many right answers is withheld."""


def choose_threshold(scored: Iterable[ScoredQuestion]) -> float:
    """A threshold that withholds at most one in 50 of the right answers, and as many wrong ones as it can.

    It lies midway between two answers: the last digits of a confidence depend on which questions are asked together.
    Raises `SettingsError` without any right answer with a call, or for a model that has no confidence.
    """
    answers = list(scored)
    known = [(one.confidence, one.score.is_right) for one in answers if one.confidence is not None]
    right = sorted(confidence for confidence, is_right in known if is_right)
    if not right:
        raise SettingsError("no threshold can be chosen: the model made no right call of which it says how sure it is")
    withheld = sum(one.score.is_right for one in answers) // MOST_RIGHT_WITHHELD
    first_made = right[min(withheld, len(right) - 1)]
    return (max((confidence for confidence, _ in known if confidence < first_made), default=0.0) + first_made) / 2


def count_withheld(scored: Mapping[str, Sequence[ScoredQuestion]], threshold: float) -> Withheld:
    """What a threshold withholds of the right and of the wrong answers, by table and of all."""
    everything = [one for questions in scored.values() for one in questions]
    rows = tuple(_count_one(name, questions, threshold) for name, questions in scored.items())
    return Withheld(threshold, rows, _count_one("all", everything, threshold))


def _count_one(name: str, scored: Sequence[ScoredQuestion], threshold: float) -> WithheldFigures:
    def count(is_right: bool) -> Share:
        answers = [one for one in scored if one.score.is_right is is_right]
        below = [one for one in answers if one.confidence is not None and one.confidence < threshold]
        return Share(len(below), len(answers))

    return WithheldFigures(name, count(False), count(True))


def write_threshold(folder: Path, withheld: Withheld, calibrated_on: str) -> None:
    """Write the threshold into a model's folder, with what it was calibrated on and what it withholds there.

    Raises `SettingsError` for a folder that can't be written to.
    """
    data: dict[str, Any] = {
        "threshold": withheld.threshold,
        "calibrated_on": calibrated_on,
        "wrong_withheld": withheld.total.wrong.as_json("withheld"),
        "right_withheld": withheld.total.right.as_json("withheld"),
    }
    try:
        (folder / CONFIDENCE_FILE).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"calibrate: {folder / CONFIDENCE_FILE} can't be written: {error.strerror}") from error
