"""A Python task from its query to its result: every class of retry, the full restart, the limits, the formulas."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from python_tasks import PREPARATION, KnownFunctions, make_executor, open_data_session, write_code

from ferrule._util.background import run_synchronously
from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.data import DataSession, TaskValue
from ferrule.analysis.events import TaskProgress, TaskRetried
from ferrule.analysis.functions import FunctionRepository
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.python_executor.code_attempt import TriedCode
from ferrule.analysis.python_executor.error_context import ErrorContext, describe_exception
from ferrule.analysis.python_executor.executor import PythonExecutor
from ferrule.analysis.python_executor.retries import FailureHistory
from ferrule.analysis.python_executor.stages import find_unknown_numbers
from ferrule.analysis.settings import AnalysisSettings
from ferrule.models.scripted import ScriptedModel

RIGHT = write_code("result = float(tables['sales'].amount.sum())", "result > 0", "result == 35")
SYNTAX = write_code("result = (1\n")
UNSAFE = write_code("import os\nresult = os.listdir('/')")
FAILING = write_code("sales = tables['sales']\nresult = sales['amuont'].sum()")


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> Iterator[DataSession]:
    opened = run_synchronously(open_data_session(tmp_path_factory.mktemp("data")))
    yield opened
    run_synchronously(opened.aclose())


async def run(session, answers, events=None, query="What is the sum?", context="", results=(), **settings):
    executor, model = make_executor(session, answers, events, **settings)
    values = {name: one if isinstance(one, TaskValue) else TaskValue(one) for name, one in dict(results).items()}
    return await executor.run("t1", query, context, values), model


async def test_a_task_goes_through_its_stages_to_a_checked_result(session):
    events = []
    outcome, model = await run(session, {"code": RIGHT}, events)
    assert outcome.error is None
    assert outcome.value == 35.0
    assert outcome.result.startswith("35.0\n\nChecks of the result:\n- passed: it holds: result > 0")
    assert model.list_stages() == ["t1/methodology/0", "t1/extraction/0", "t1/tool_query/0", "t1/code/0"]
    assert [event.stage for event in events if isinstance(event, TaskProgress)] == [
        "methodology", "functions", "extraction", "tool_query", "code", "run",
    ]  # fmt: skip
    assert outcome.methodology.primary_approach == "Add the amounts."
    assert [function.path for function in outcome.functions] == ["pandas.DataFrame.groupby"]
    assert [(check.passed, check.code) for check in outcome.checks] == [(True, "result > 0"), (True, "result == 35")]
    assert [attempt.failure for attempt in outcome.attempts] == [None]
    assert "Compute the sum of amount in sales." in model.find("code").question


@pytest.mark.parametrize(
    ("wrong", "failure", "error_type", "told"),
    [
        (SYNTAX, "syntax", "SyntaxError", "The parenthesis `(` was never closed."),
        (UNSAFE, "safety", "SafetyViolation", "the data is bound already: use tables['sales']"),
        (FAILING, "runtime", "KeyError", "Did you mean `'amount'`?"),
        (
            write_code("result = -35", "result > 0"),
            "check",
            "CheckFailed",
            "it holds: result > 0 (false, with -35 and 0)",
        ),
        ("no JSON at all", "syntax", "InvalidAnswer", "Answer with the JSON object that is asked for"),
    ],
)
async def test_each_class_of_failure_is_told_and_tried_again(session, wrong, failure, error_type, told):
    events = []
    answers = [wrong, wrong, wrong, RIGHT] if isinstance(wrong, str) else [wrong, RIGHT]
    outcome, model = await run(session, {"code": answers}, events)
    assert outcome.value == 35.0
    assert [attempt.failure for attempt in outcome.attempts] == [failure, None]
    error = outcome.attempts[0].error_context
    assert error.error_type == error_type
    correction = model.seen[-1]
    assert str(correction.key) == "t1/code/1"
    assert told in correction.question
    assert f"error_type: {error_type}" in correction.question
    assert f"1. failed ({failure}): " in correction.question
    [retried] = [event for event in events if isinstance(event, TaskRetried)]
    assert (retried.attempt, retried.failure, retried.temperature, retried.timeout) == (1, failure, 0.3, 72)


async def test_the_error_context_has_the_fields_of_the_seed(session):
    outcome, model = await run(session, {"code": [FAILING, RIGHT]})
    error = outcome.attempts[0].error_context
    assert (error.error_type, error.error_message, error.problematic_line) == ("KeyError", "'amuont'", 2)
    assert error.problematic_code == "result = sales['amuont'].sum()"
    assert error.variable_name == "amuont"
    assert any("'region', 'amount'" in fix for fix in error.suggested_fixes)
    for line in ("problematic_line: 2", "variable_name: amuont", "suggested_fixes:"):
        assert line in model.seen[-1].question


@pytest.mark.parametrize(
    ("wrong", "setting", "limit"),
    [
        (SYNTAX, "python_max_ast_retries", 3),
        (UNSAFE, "python_max_safety_retries", 1),
        (FAILING, "python_max_runtime_retries", 2),
        (FAILING, "python_max_runtime_retries", 0),
    ],
)
async def test_each_class_has_its_own_limit(session, wrong, setting, limit):
    settings = {
        "python_max_ast_retries": 0, "python_max_safety_retries": 0, "python_max_runtime_retries": 0,
        "python_max_tool_query_retries": 0, setting: limit,
    }  # fmt: skip
    # Each differs, as that of a model that learns: code that fails alike again isn't tried to the end.
    codes = [
        {**wrong, "code": wrong["code"].replace("result = ", f"result = {number} + ")} for number in range(limit + 1)
    ]
    outcome, model = await run(session, {"code": codes}, **settings)
    assert len(outcome.attempts) == limit + 1
    assert outcome.value is None
    attempts = f"{limit + 1} attempt{'s' if limit else ''}"
    assert outcome.error.startswith(f"after {attempts} there is no result; the last failure (")
    assert outcome.attempts[-1].message in outcome.error
    assert model.list_stages().count("t1/tool_query/0") == 1


async def test_the_same_code_that_fails_alike_is_not_tried_to_the_end_of_its_limits(session):
    same = [{**FAILING, "code": f"{FAILING['code']}  # attempt {number}\n"} for number in range(20)]
    outcome, model = await run(session, {"code": same})
    # A repetition ends the pass, the restart words the task anew, and another one ends the task.
    assert [(attempt.failure, attempt.restart) for attempt in outcome.attempts] == [("runtime", 0)] * 2 + [
        ("runtime", 1)
    ]
    assert len(model.seen) == 2 + 2 + 3
    assert outcome.is_final
    assert outcome.error == (
        "the model wrote the same code again, which failed in the same way; after 3 attempts there is no result; the "
        "last failure (runtime): line 2: KeyError: 'amuont'"
    )


async def test_a_line_that_stays_and_fails_alike_is_given_up(session):
    around = [{**FAILING, "code": f"{FAILING['code']}\nprint({number})"} for number in range(20)]
    outcome, _ = await run(session, {"code": around})
    assert [attempt.restart for attempt in outcome.attempts] == [0, 0, 0, 1]
    assert outcome.error.startswith("the same line failed in the same way 3 times; after 4 attempts there is no result")


async def test_the_same_code_may_be_tried_again_with_another_check(session):
    wrong, right = write_code("result = 35.0", "result == 36"), write_code("result = 35.0", "result == 35")
    outcome, _ = await run(session, {"code": [wrong, right]})
    assert [attempt.failure for attempt in outcome.attempts] == ["check", None]
    outcome, _ = await run(session, {"code": wrong})
    assert (len(outcome.attempts), outcome.value) == (2, 35.0)
    assert outcome.notes[-1] == (
        "no further attempt was made: the model wrote the same code again, which failed in the same way"
    )


@pytest.mark.parametrize(
    ("first", "second", "is_repetition"),
    [
        (ErrorContext("Timeout", "longer than 60 s"), ErrorContext("Timeout", "longer than 72 s"), False),
        (ErrorContext("SandboxLost", "it ended"), ErrorContext("SandboxLost", "it ended"), False),
        (ErrorContext("OutOfMemory", "too much"), ErrorContext("OutOfMemory", "too much"), True),
    ],
)
def test_the_same_code_may_be_tried_again_with_more_time_or_after_an_accident(first, second, is_repetition):
    history = FailureHistory()
    for error in (first, second):
        history.add(TriedCode("x = [0]", failure="runtime", error=error))
    assert bool(history.reason) == is_repetition


async def test_temperature_and_timeout_rise_by_the_formulas_of_the_seed_through_classes_and_restarts(session):
    wrong = [SYNTAX, UNSAFE, FAILING, SYNTAX, RIGHT]
    outcome, model = await run(
        session,
        {"code": wrong},
        python_temperature=0.2,
        retry_temperature_increase=0.15,
        python_run_timeout=50,
        python_max_ast_retries=1,
        python_max_tool_query_retries=1,
    )
    assert [attempt.failure for attempt in outcome.attempts] == ["syntax", "safety", "runtime", "syntax", None]
    assert [attempt.restart for attempt in outcome.attempts] == [0, 0, 0, 0, 1]
    numbers = [0, 1, 2, 3, 1]
    assert [attempt.temperature for attempt in outcome.attempts] == [round(0.2 + n * 0.15, 6) for n in numbers]
    assert [attempt.timeout for attempt in outcome.attempts] == [(50 * (5 + n)) // 5 for n in numbers]
    codes = [request for request in model.seen if request.key.stage == "code"]
    assert [request.settings.temperature for request in codes] == [round(0.2 + n * 0.15, 6) for n in numbers]


async def test_a_full_restart_begins_at_the_tool_query_with_what_failed_before(session):
    events = []
    outcome, model = await run(
        session,
        {"code": [FAILING, FAILING, RIGHT]},
        events,
        python_max_runtime_retries=1,
        python_max_tool_query_retries=1,
    )
    retried = [event for event in events if isinstance(event, TaskRetried)]
    assert [(event.attempt, event.failure, event.timeout) for event in retried] == [
        (1, "runtime", 72),
        (2, "runtime", 72),
    ]
    assert outcome.value == 35.0
    assert model.list_stages() == [
        "t1/methodology/0", "t1/extraction/0", "t1/tool_query/0", "t1/code/0", "t1/code/1", "t1/tool_query/1",
        "t1/code/2",
    ]  # fmt: skip
    restarted = model.find("t1/tool_query/1")
    assert "2. failed (runtime): line 2: KeyError: 'amuont'" in restarted.question
    assert restarted.settings.temperature == pytest.approx(0.3)
    # From nothing: the code of the pass before isn't shown.
    assert "amuont" not in model.find("t1/code/2").question


async def test_a_task_that_is_run_again_asks_new_questions_with_higher_temperatures(session):
    executor, model = make_executor(session, {"code": RIGHT})
    for _ in range(2):
        assert (await executor.run("t1", "What is the sum?", "", {})).value == 35.0
    assert len(set(model.list_stages())) == 8
    assert model.seen[-1].settings.temperature == pytest.approx(0.3)


async def test_a_result_whose_checks_still_fail_is_returned_with_that_said(session):
    doubtful = write_code("result = 35.0", "result == 36", "result > 0", "no_such_name > 0")
    worse = write_code("result = 34.0", "result == 36", "result > 100")
    broken = write_code("1 / 0")
    outcome, model = await run(session, {"code": [doubtful, worse, broken]}, python_max_runtime_retries=2)
    assert (outcome.error, outcome.value) == (None, 35.0)
    assert [attempt.failure for attempt in outcome.attempts] == ["check", "check", "runtime"]
    assert [check.passed for check in outcome.checks] == [False, True, None]
    assert "- FAILED: it holds: result == 36 (false, with 35.0 and 36)" in outcome.result
    assert (
        "- could not run: it holds: no_such_name > 0 (NameError: name 'no_such_name' is not defined)" in outcome.result
    )
    assert "Note: a check of this result failed: it holds: result == 36" in outcome.result
    assert model.list_stages().count("t1/tool_query/1") == 0


async def test_checks_are_checked_too_and_change_nothing(session):
    checks = (
        "__import__('os').getcwd()",
        "(1",
        "result.clear() is None",
        "len(result) == 2",
        "tables['sales'].amount > 0",
    )
    outcome, _ = await run(session, {"code": [write_code("result = {'a': 1, 'b': 2}", *checks)]})
    assert outcome.value == {"a": 1, "b": 2}
    assert [check.passed for check in outcome.checks][:3] == [None, None, True]
    assert "not allowed" in outcome.checks[0].detail
    assert "never closed" in outcome.checks[1].detail


async def test_checks_that_print_or_never_end_leave_the_result(session):
    checks = (
        "[print('x' * 10**6) for _ in range(50)]",
        "result = 5",
        "result == 1",
        "while True:\n    result += 1\nTrue",
    )
    outcome, _ = await run(session, {"code": [write_code("result = 1", *checks)]}, python_run_timeout=4)
    assert (outcome.value, outcome.output) == (1, "")
    assert [check.passed for check in outcome.checks] == [True, None, True, None]
    assert "TimeoutError: it took longer than the" in outcome.checks[3].detail


async def test_repaired_indentation_is_told(session):
    code = (
        "def add(sales):\n    total = sales.amount.sum()\n     return float(total)\n\nresult = add(tables['sales'])\n"
    )
    outcome, model = await run(session, {"code": write_code(f"```python\n{code}```")})
    assert outcome.value == 35.0
    assert len([stage for stage in model.list_stages() if "code" in stage]) == 1
    assert "Note: the ``` lines around the code were removed" in outcome.result
    assert any("the indentation of line 3 was repaired" in note for note in outcome.notes)
    assert "     return" not in outcome.code


@pytest.mark.parametrize(
    ("code", "error_type", "said"),
    [
        ("while True:\n    print('x' * 10000)", "TooMuchOutput", "it wrote more than 1048576 bytes"),
        ("print('x' * 100_000_000)", "TooMuchOutput", "it wrote more than 1048576 bytes"),
        ("while True: pass", "Timeout", "it took longer than 1 s and was ended"),
        ("result = [0] * 10**10", "OutOfMemory", "MemoryError"),
        ("x = 1", "NoResult", "the code ended without a result"),
        ("exit(3)", "SystemExit", "3"),
        ("import os\nos._exit(0)", "Killed", "its process ended before it gave an answer"),
        (
            "import builtins\nbuiltins.len = None\nresult = 1 / 0",
            "Killed",
            "its process ended before it gave an answer",
        ),
        ("result = '" + "x" * 1_100_000 + "'", "InvalidInput", "pass data as inputs"),
        ("import scippy\nresult = 1", "ModuleNotFoundError", "No module named 'scippy'"),
    ],
)
async def test_code_that_does_harm_or_nothing_ends_in_a_clear_outcome(session, code, error_type, said):
    outcome, _ = await run(
        session, {"code": write_code(code)}, python_max_runtime_retries=0, python_max_tool_query_retries=0,
        python_run_timeout=1, checks="advise",
    )  # fmt: skip
    error = outcome.attempts[0].error_context
    assert error.error_type == error_type
    assert said in error.error_message
    assert said in outcome.error
    assert error.suggested_fixes or error_type == "SystemExit"
    assert len(outcome.output) <= 2 * 2**20


async def test_results_that_are_too_large_to_hand_on_end_the_task_before_anything_is_asked(session):
    large = {"t1": TaskValue(None, bytes(20_000_000)), "t2": TaskValue([1], bytes(15_000_000))}
    outcome, model = await run(session, {}, results=large)
    assert outcome.error == (
        "the results that it needs are more than the 33 MB that a task can be handed: t1 left 20 MB, t2 left 15 MB. "
        "Aggregate or filter in the earlier task, or compute both in one task from the tables"
    )
    assert model.seen == []


async def test_a_table_a_figure_and_what_was_printed_are_kept(session):
    code = (
        "import matplotlib.pyplot as plt\nsales = tables['sales']\nresult = sales.groupby('region').amount.sum()\n"
        "figure, axes = plt.subplots()\naxes.bar(result.index, result)\nprint('drawn')"
    )
    outcome, _ = await run(session, {"code": write_code(code, "result.sum() == 35")})
    assert outcome.error is None
    assert (outcome.output, len(outcome.figures)) == ("drawn\n", 1)
    assert "1 figure" in outcome.result
    assert "Later tasks have it whole, as Series" in outcome.result
    using = write_code("result = float(results['t0'].sum()) + results['t9']['more']")
    later, _ = await run(session, {"code": using}, results={"t0": outcome.kept, "t9": {"more": 1}})
    assert later.value == 36.0
    assert outcome.value["rows"] == [[0.0], [15.0], [20.0]]


@pytest.mark.parametrize("missing", ["pandas.NaT", "pandas.NA", "numpy.datetime64('NaT')"])
async def test_a_missing_value_is_a_result_and_named(session, missing):
    code = write_code(f"import numpy, pandas\nresult = {missing}", "pandas.isna(result)")
    outcome, _ = await run(session, {"code": code})
    assert (outcome.error, outcome.value) == (None, None)
    assert outcome.result.startswith(f"a missing value ({missing})")
    later, _ = await run(
        session,
        {"code": write_code("import pandas\nresult = bool(pandas.isna(results['t0']))")},
        results={"t0": outcome.kept},
    )
    assert later.value is True


async def test_extracted_values_are_bound_and_those_that_nobody_gave_are_told(session):
    extraction = {"extracted_values": {"rate": 0.05, "people": 3000, "guess": 7}}
    outcome, model = await run(
        session,
        {"extraction": extraction, "code": write_code("result = extracted_values['rate'] * results['t0']")},
        query="What are 5% for 3 k people?",
        results={"t0": 200},
    )
    assert outcome.value == 10.0
    assert outcome.notes == ("extracted values that neither the task nor its context holds: guess = 7",)
    assert '"rate": 0.05' in model.find("code").question


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("the values 3, 4 and 5, as [3,4,5] or 3 4 5", ["34", "234"]),
        ("2 500 000, 7%, 1,234 and −2.5e3", ["1", "234", "25"]),
    ],
)
def test_numbers_of_a_list_stand_in_the_text(text, unknown):
    values = {"listed": [3, 4, 5]} if "values" in text else {"grouped": [2500000, 0.07, 1234, -2500]}
    assert find_unknown_numbers(values, text) == []
    assert find_unknown_numbers({one: int(one) for one in unknown}, text) == [f"{one} = {one}" for one in unknown]


async def test_a_function_that_does_not_exist_is_said(session):
    methodology = {
        "primary_approach": "Test.",
        "recommended_function_paths": ["scipy.stats.ttest_nid"],
        "methods": ["ttest"],
    }
    outcome, model = await run(session, {"methodology": methodology, "code": RIGHT})
    assert outcome.notes == ("recommended functions not installed or not existing: scipy.stats.ttest_nid",)
    assert [function.path for function in outcome.functions] == ["scipy.stats.ttest_ind"]
    assert "not installed or not existing: scipy.stats.ttest_nid" in model.find("code").question


@pytest.mark.parametrize("stage", ["methodology", "extraction", "tool_query"])
async def test_a_model_that_answers_nonsense_ends_the_task_with_that_said(session, stage):
    outcome, _ = await run(session, {stage: "I would rather not."})
    assert outcome.error
    assert outcome.attempts == ()
    assert "I would rather not." in outcome.error or "JSON" in outcome.error


async def test_a_provider_that_fails_leaves_the_result_that_is_there(session):
    from ferrule.errors import ModelError

    doubtful = write_code("result = 35.0", "result == 36")
    outcome, _ = await run(session, {"code": [doubtful, ModelError("the service is down")]})
    assert outcome.value == 35.0
    assert any("no further attempt was made: the service is down" in note for note in outcome.notes)
    with pytest.raises(ModelError, match="the service is down"):
        await run(session, {"code": ModelError("the service is down")})


@pytest.mark.slow
async def test_functions_come_from_the_real_repository(session, tmp_path):
    answers = {
        "methodology": {
            "primary_approach": "Compare the means.",
            "methods": ["Welch's t-test"],
            "recommended_function_paths": ["scipy.stats.ttest_ind", "scipy.stats.no_such_test"],
        },
        "code": RIGHT,
    }
    async with await FunctionRepository.open(folder=tmp_path) as functions:
        executor, model = make_executor(session, answers, functions=functions)
        outcome = await executor.run("t1", "Test whether two means differ.", "", {})
    assert outcome.functions[0].path == "scipy.stats.ttest_ind"
    assert "equal_var" in model.find("code").question
    assert "scipy.stats.ttest_ind" in model.find("methodology").question
    assert outcome.notes == ("recommended functions not installed or not existing: scipy.stats.no_such_test",)


async def test_a_script_of_answers_is_used_up_in_the_order_of_the_stages(session):
    model = ScriptedModel(*(json.dumps(answer) for answer in (*PREPARATION.values(), SYNTAX, UNSAFE, FAILING, RIGHT)))
    asker = Asker(ModelChoice(model), AnalysisLimits())
    outcome = await PythonExecutor(asker, AnalysisSettings(), session, KnownFunctions()).run("t1", "Sum.", "", {})
    model.assert_used_up()
    assert outcome.value == 35.0
    assert [attempt.failure for attempt in outcome.attempts] == ["syntax", "safety", "runtime", None]


async def test_tasks_run_at_the_same_time_and_share_nothing(session):
    codes = {f"t{number}/code": write_code(f"result = {number} * len(tables['sales'])") for number in range(4)}
    executor, model = make_executor(session, codes)
    outcomes = await asyncio.gather(*(executor.run(f"t{number}", "Count.", "", {}) for number in range(4)))
    assert [outcome.value for outcome in outcomes] == [0, 4, 8, 12]
    assert len(set(model.list_stages())) == 16


@pytest.mark.slow
async def test_tasks_run_in_the_container_tier_where_no_process_can_be_forked(tmp_path):
    drawn = write_code(
        "import matplotlib.pyplot as plt\ntotal = tables['sales'].groupby('region').amount.sum()\n"
        "total.plot.bar()\nresult = total",
        "result.sum() == tables['sales'].amount.sum()",
    )
    answers = {
        "t1/code": [FAILING, drawn],
        "t2/code": write_code("result = float(results['t1'].max())", "result == 20"),
    }
    async with await open_data_session(tmp_path, tier="container") as session:
        executor, _ = make_executor(session, answers)
        first = await executor.run("t1", "Draw the sums.", "", {})
        second = await executor.run("t2", "The largest?", "", {"t1": first.kept})
    assert [attempt.failure for attempt in first.attempts] == ["runtime", None]
    assert "Did you mean `'amount'`?" in first.attempts[0].error_context.suggested_fixes
    assert ([check.passed for check in first.checks], len(first.figures)) == ([True], 1)
    assert (second.error, second.value, second.checks[0].passed) == (None, 20.0, True)


def test_hints_that_are_unfilled_templates_are_left_out():
    found = {"type": "SyntaxError", "fixes": ["You wrote `{op}` by mistake.", "Close the bracket of f'{total}'."]}
    assert describe_exception(found, "print(f'{total}'").suggested_fixes == ("Close the bracket of f'{total}'.",)
