"""The choice of the threshold below which a call is withheld, and what it withholds."""

import io
import json
import shutil

import pytest
from rich.console import Console

from ferrule.embedded import find_embedded_folder
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.withholding import read_threshold
from ferrule.errors import SettingsError
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.training.embedded.asking import ScoredQuestion
from ferrule.training.embedded.evaluation import (
    EvaluationSettings,
    choose_threshold,
    count_withheld,
    run_evaluation,
    write_threshold,
)
from ferrule.training.embedded.report import ScoreReport, Share, make_rich_tables
from ferrule.training.embedded.scoring import EvaluationQuestion, MadeCall, ModelAnswer, Score


def answer(is_right: bool, *confidences: float) -> ScoredQuestion:
    score = Score(is_right, is_right)
    calls = tuple(MadeCall("1 + 1", "2", confidence=one) for one in confidences)
    return ScoredQuestion(EvaluationQuestion("q", "words", ("?",), lambda _: score), (ModelAnswer(calls, "2"),), score)


RIGHT = [answer(True, (place + 1) / 100) for place in range(100)]
WRONG = [answer(False, 0.001), answer(False, 0.9, 0.02), answer(False, 0.99), answer(False)]


def test_at_most_one_in_fifty_right_calls_is_withheld() -> None:
    threshold = choose_threshold([*RIGHT, *WRONG])
    withheld = count_withheld({"open": [*RIGHT, *WRONG], "none": []}, threshold)
    assert threshold == pytest.approx(0.025)
    assert withheld.rows[0].right == Share(2, 100)
    # A wrong answer without a call can't be withheld, and counts.
    assert withheld.rows[0].wrong == Share(2, 4)
    assert choose_threshold(RIGHT[:49]) == pytest.approx(0.005)


def test_without_right_calls_nothing_can_be_chosen() -> None:
    with pytest.raises(SettingsError, match="no right call"):
        choose_threshold([*WRONG, answer(True)])


def test_the_file_and_the_table(tmp_path) -> None:
    withheld = count_withheld({"open": [*RIGHT, *WRONG]}, 0.03)
    write_threshold(tmp_path, withheld, "the open lists")
    written = json.loads((tmp_path / "confidence.json").read_text())
    assert written["calibrated_on"] == "the open lists"
    assert (written["right_withheld"]["withheld"], written["wrong_withheld"]["share"]) == (2, 0.5)
    assert read_threshold(tmp_path) == 0.03
    console = Console(width=140, file=io.StringIO())
    report = ScoreReport("m", 1, (), (), withheld)
    for shown in make_rich_tables(report):
        console.print(shown)
    assert "50.0% (15.0 to 85.0)" in console.file.getvalue()
    assert report.as_json()["withheld"]["total"]["wrong"]["n"] == 4
    with pytest.raises(SettingsError, match="can't be written"):
        write_threshold(tmp_path / "missing", withheld, "")


def test_only_the_open_lists_choose_a_threshold() -> None:
    with pytest.raises(SettingsError, match="needs --phrasings open"):
        run_evaluation(EvaluationSettings(calibrate=True, phrasings="held-out"))


@pytest.mark.slow
def test_a_model_that_was_calibrated_withholds_and_is_measured_with_every_call(tmp_path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(find_embedded_folder(), folder)
    settings = EvaluationSettings(model=folder, count=0, phrasings="open", calibrate=True)
    report = run_evaluation(settings)
    assert report.withheld is not None
    assert report.withheld.total.right.share <= 1 / 50
    assert report.withheld.total.wrong.right > 0
    assert load_local_model(folder).guide == EmbeddedGuide(report.withheld.threshold)
    again = run_evaluation(EvaluationSettings(model=folder, count=0, phrasings="open"))
    assert (again.withheld, again.tables) == (report.withheld, report.tables)
