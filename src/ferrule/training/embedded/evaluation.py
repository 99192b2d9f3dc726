"""`ferrule eval embedded`: how often a model's calls and final answers are right, by kind.

`asking.py` asks the questions, `scoring.py` and `handwritten.py` make them. Needs no torch.

The threshold of confidence is chosen here too. A question counts as withheld if the model is less sure than that of one
of its calls. The model is asked with every call made, so that it is known whether a withheld answer would have been
right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ferrule._util.background import run_synchronously
from ferrule.agent.pipeline import Pipeline
from ferrule.embedded import RuleName, find_embedded_folder, load_embedded_model
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.withholding import CONFIDENCE_FILE
from ferrule.engines import limit_blas_threads
from ferrule.errors import SettingsError
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.protocol import Model
from ferrule.training.embedded.asking import ScoredQuestion, ask_all
from ferrule.training.embedded.handwritten import HELD_OUT_LISTS, read_lists
from ferrule.training.embedded.report import ScoreReport, Share, Withheld, WithheldFigures, WrongAnswer, make_table
from ferrule.training.embedded.scoring import EvaluationQuestion, draw_held_out_questions, draw_long_results

HELD_OUT = "held-out problems"
LONG_RESULTS = "long results"
_DRAWN = (HELD_OUT, LONG_RESULTS)


class EvaluationSettings(BaseModel):
    """What is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Path | None = None
    """The folder of the model to measure; None is the one in the package."""
    count: Annotated[int, Field(ge=0)] = 2000
    """Held-out problems to draw."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The seed for drawing problems."""
    phrasings: Literal["steering", "final", "open", "held-out", "none"] = "none"
    """The hand-written lists to ask as well: recipes may be tuned on `steering` and `open` (of the second edition, with
    foreign tools), never on `final` and `held-out`."""
    long_results: Annotated[int, Field(ge=0)] = 0
    """Products of 24 digits, and as many of 5 to 12, to ask for as well."""
    failures: bool = False
    """Report the questions with wrong answers; those of `final` and `held-out` are never reported."""
    calibrate: bool = False
    """Choose the confidence below which the model asks instead of calling, by its answers to the `open` lists, and
    write it to `confidence.json` in the model's folder."""
    without: tuple[RuleName, ...] = ()
    """Rules that steer the model's calls, to switch off: what they are worth is the difference."""
    together: Annotated[int, Field(gt=0)] = 32
    """Concurrent conversations."""
    most_tokens: Annotated[int, Field(gt=0)] = 400
    """The maximum number of tokens of one message, for turns that the model never ends."""

    @field_validator("model", mode="before")
    @classmethod
    def _read_folder(cls, value: object) -> object:
        """Such a model is `local:FOLDER` to every other command."""
        return Path(str(value).removeprefix("local:")) if isinstance(value, str | Path) else value


Progress = Callable[[int, int], None]
"""Called with the number of answered questions, and the total."""


def run_evaluation(settings: EvaluationSettings, progress: Progress | None = None) -> ScoreReport:
    """Load a model and measure it.

    Raises `ModelError` if there is no such model, and `SettingsError` for settings that leave nothing to ask, or that
    request what is never reported.
    """
    _check(settings)
    return run_synchronously(_load_and_evaluate(settings, progress))


async def _load_and_evaluate(settings: EvaluationSettings, progress: Progress | None) -> ScoreReport:
    with limit_blas_threads():
        model = load_local_model(settings.model) if settings.model is not None else load_embedded_model()
    threshold = None
    if isinstance(model.guide, EmbeddedGuide):
        threshold = model.guide.threshold
        # Every call is made, so that it is known whether a withheld one would have been right.
        model.guide = model.guide.without("withholding", *settings.without)
    elif settings.without:
        raise SettingsError(f"without: no rules steer the calls of {model.name}")
    async with model:
        report = await evaluate(model, settings, progress, threshold)
    if settings.calibrate and report.withheld is not None:
        write_threshold(settings.model or find_embedded_folder(), report.withheld, _describe_lists(report))
    return report


def _describe_lists(report: ScoreReport) -> str:
    asked = (f"{table.name} ({table.total.n})" for table in report.tables if table.name not in _DRAWN)
    return f"ferrule eval embedded --phrasings open: {', '.join(asked)}"


async def evaluate(
    model: Model, settings: EvaluationSettings, progress: Progress | None = None, threshold: float | None = None
) -> ScoreReport:
    """Measure a model, which must know the calculator, greedily; ignores `settings.model`. Raises as above.

    One that knows no other tool is asked no question that offers others. The report says what `threshold` withholds,
    or, with `settings.calibrate`, the one that fits the answers to the lists, and what it withholds of these.
    """
    _check(settings)
    sets = _collect_questions(settings, has_tools=model.capabilities.tools is None)
    counted = _count(sum(map(len, sets.values())), progress)
    pipeline = Pipeline(model).with_(max_tokens=settings.most_tokens)
    scored = {name: await ask_all(pipeline, asked, settings.together, counted) for name, asked in sets.items()}
    tables = [
        make_table(name, ((one.question.kind, one.score) for one in answered)) for name, answered in scored.items()
    ]
    failures = collect_wrong_answers(chain.from_iterable(scored.values())) if settings.failures else ()
    if settings.calibrate:
        scored = {name: answered for name, answered in scored.items() if name not in _DRAWN}
        threshold = choose_threshold(chain.from_iterable(scored.values()))
    withheld = None if threshold is None else count_withheld(scored, threshold)
    return ScoreReport(model.name, settings.seed, tuple(tables), tuple(failures), withheld)


def _collect_questions(settings: EvaluationSettings, *, has_tools: bool) -> dict[str, list[EvaluationQuestion]]:
    """The questions that a model can be asked, by the name of their table; there is no table without a question."""
    sets: dict[str, list[EvaluationQuestion]] = {
        HELD_OUT: list(draw_held_out_questions(settings.count, settings.seed, has_tools=has_tools)),
        LONG_RESULTS: list(draw_long_results(settings.long_results, settings.seed)),
    }
    if settings.phrasings != "none":
        sets |= read_lists(settings.phrasings)
    asked = {
        name: [question for question in questions if has_tools or not question.tools]
        for name, questions in sets.items()
    }
    return {name: questions for name, questions in asked.items() if questions}


def collect_wrong_answers(scored: Iterable[ScoredQuestion]) -> list[WrongAnswer]:
    """What was answered wrongly."""
    return [
        WrongAnswer(one.question.id, one.question.kind, one.question.prompts, one.answers, one.score)
        for one in scored
        if not one.score.is_right
    ]


def _count(total: int, progress: Progress | None) -> Callable[[], None]:
    done = 0

    def report_progress() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return report_progress


def _check(settings: EvaluationSettings) -> None:
    if not settings.count and not settings.long_results and settings.phrasings == "none":
        raise SettingsError("nothing to ask: count and long_results are 0, and no list of phrasings is named")
    if settings.calibrate and settings.phrasings != "open":
        raise SettingsError("a threshold is chosen by the open lists alone: calibrate needs --phrasings open")
    if settings.failures and settings.phrasings in HELD_OUT_LISTS:
        raise SettingsError(
            f"failures of the {settings.phrasings} list are never shown, so that no recipe is tuned on them; "
            "ask for figures"
        )


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
