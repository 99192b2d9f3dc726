"""`ferrule functions`: questions in plain words, one function whole, and what is wrong with the arguments."""

import json
from pathlib import Path

import pytest
from terminals import ferrule


def test_the_command_lists_functions(function_cache: Path) -> None:
    done = ferrule("functions", "test whether two means differ", XDG_CACHE_HOME=str(function_cache))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert "scipy.stats.ttest_ind" in lines
    data = json.loads(
        ferrule("functions", "median", "--limit", "2", "--json", XDG_CACHE_HOME=str(function_cache)).stdout
    )
    assert [sorted(one) for one in data] == [
        ["examples", "origin", "parameters", "path", "purpose", "returns", "signature"]
    ] * 2


def test_the_command_shows_one_function(function_cache: Path) -> None:
    done = ferrule("functions", "--path", "np.median", XDG_CACHE_HOME=str(function_cache))
    assert done.stdout.startswith("numpy.median(a, axis=None, ")
    assert "Parameters:" in done.stdout
    assert "Examples:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), 'give a question ("test whether two means differ") or --path NAME, one of them'),
        (("median", "--path", "numpy.median"), "or --path NAME, one of them"),
        ((" ",), "the question is empty"),
        (("--path", "numpy.meen"), "no function numpy.meen is installed; did you mean numpy.mean or "),
        (("--path", "qqqqqqqqqqqq"), "no function qqqqqqqqqqqq is installed: write its whole path"),
        (("median", "--limit", "0"), "--limit: must be greater than or equal to 1, not '0'"),
    ],
)
def test_wrong_arguments_are_one_clear_line(function_cache: Path, arguments: tuple[str, ...], message: str) -> None:
    done = ferrule("functions", *arguments, XDG_CACHE_HOME=str(function_cache))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
