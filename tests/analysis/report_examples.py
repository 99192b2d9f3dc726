"""Results of analyses for the tests of the report and the notebook: one that is harmless, and one that is hostile."""

from __future__ import annotations

import io

from ferrule.analysis.limits import Spending
from ferrule.analysis.plan import Plan, PlanTask
from ferrule.analysis.python_executor.error_context import ErrorContext
from ferrule.analysis.python_executor.stages import ExtractedData, Methodology
from ferrule.analysis.result import (
    AnalysisResult,
    Attempt,
    FocusedAnswer,
    OutputEntry,
    PlanRecord,
    ResultCheck,
    TaskExecution,
)
from ferrule.conversation import Image

QUESTION = "Which region drives the Q3 drop, and is it significant?"
CODE = """import pandas as pd

sales = tables["sales"]
change = sales.pivot_table(index="region", columns="quarter", values="revenue", aggfunc="sum")
change["change"] = change["Q3"] / change["Q2"] - 1
result = change
"""
TEST_CODE = """from scipy import stats

sales = tables["sales"]
west = sales[sales["region"] == "West"]
test = stats.ttest_ind(west[west["quarter"] == "Q3"]["revenue"], west[west["quarter"] == "Q2"]["revenue"])
result = {"t": test.statistic, "p": test.pvalue}
"""
PLAN = Plan(
    approach="Compare the regions between the quarters, test the largest change, and recall what may explain it.",
    tasks=(
        PlanTask(id="t1", tool="py_executor", query="Change of revenue by region from Q2 to Q3"),
        PlanTask(id="t2", tool="knowledge_retriever", query="What lowers retail sales in a third quarter?"),
        PlanTask(id="t3", tool="py_executor", query="Is West's change significant?", needs=("t1",)),
        PlanTask(id="t4", tool="logic_kernel", query="Which explanation fits?", needs=("t1", "t2", "t3")),
    ),
)


def make_figure(color: tuple[int, int, int] = (70, 110, 180)) -> Image:
    """A picture of 320 × 160 pixels as PNG."""
    from PIL import Image as Picture

    picture = Picture.new("RGB", (320, 160), "white")
    for column, height in enumerate((40, 90, 120, 60)):
        picture.paste(color, (20 + 75 * column, 150 - height, 70 + 75 * column, 150))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return Image(file.getvalue())


def make_result() -> AnalysisResult:
    """A complete analysis with a retry, a figure, checks and a second-hand number."""
    failed = ErrorContext("KeyError", "'qarter'", 4, 'values = sales["qarter"]', "qarter", ("Did you mean 'quarter'?",))
    tasks = [
        TaskExecution(
            id="t1",
            tool="py_executor",
            task_query=PLAN.tasks[0].query,
            result=(
                "region           Q2         Q3    change\n"
                "East     830211.00  871721.60  0.05000\n"
                "West    1250340.50 1020277.90 -0.18400"
            ),
            value={
                "columns": ["Q2", "Q3", "change"],
                "rows": [[830211.0, 871721.6, 0.05], [1250340.5, 1020277.9, -0.184]],
                "index": ["East", "West"],
                "total_rows": 2,
            },
            code=CODE,
            methodology_data=Methodology(
                primary_approach="Compare sums by group",
                methods=["pivot table"],
                formulas=["change = Q3 / Q2 - 1"],
                step_by_step_process=["Sum revenue by region and quarter", "Divide"],
                required_libraries=["pandas"],
                data_transformation="None",
                recommended_function_paths=["pandas.DataFrame.pivot_table"],
            ),
            extracted_data=ExtractedData(
                extracted_values={"quarters": ["Q2", "Q3"]}, data_format="names", transformations_applied=[]
            ),
            figures=(make_figure(),),
            checks=(ResultCheck("no change is below -100%", True),),
            attempts=(
                Attempt("runtime", "line 4: KeyError: 'qarter'", 0.2, 60.0, CODE.replace("quarter", "qarter"), failed),
                Attempt(None, "", 0.3, 72.0, CODE),
            ),
            started=1.2,
            ended=4.6,
            calls=5,
            cost=0.0031,
        ),
        TaskExecution(
            id="t2",
            tool="knowledge_retriever",
            task_query=PLAN.tasks[1].query,
            result="Retail sales often fall by 5% in summer. This is from training data, not from live sources.",
            started=1.2,
            ended=2.9,
            calls=1,
            cost=0.0004,
        ),
        TaskExecution(
            id="t3",
            tool="py_executor",
            task_query=PLAN.tasks[2].query,
            needs=("t1",),
            result="t = -3.2104, p = 0.00139",
            value={"t": -3.2104, "p": 0.00139},
            code=TEST_CODE,
            started=4.6,
            ended=6.1,
            calls=4,
            cost=0.0022,
        ),
        TaskExecution(
            id="t4",
            tool="logic_kernel",
            task_query=PLAN.tasks[3].query,
            needs=("t1", "t2", "t3"),
            status="failed",
            error="The model's answer had no JSON after 3 attempts.",
            started=6.1,
            ended=9.0,
            calls=3,
            cost=0.0010,
        ),
    ]
    return AnalysisResult(
        question=QUESTION,
        output_entries=[
            OutputEntry("plan", PlanRecord(PLAN, reason="It tests the change that it finds.")),
            *(OutputEntry("task_execution", task) for task in tasks),
        ],
        answer=(
            "**West** drives the drop: its revenue fell by 18.4%, from $1.25M to $1.02M, while East grew by 5.0%. "
            "The change is significant (t = −3.21, p = 0.001).\n\n"
            "A summer slump of 5% is usual, and prices rose by 2.7%."
        ),
        key_findings=("West's revenue fell by 18.4%.", "The drop is significant (p < 0.01)."),
        focused_answer=FocusedAnswer("text", "West", "West (−18.4%, p = 0.001)"),
        usage=Spending(calls=17, cost=0.0093, seconds=11.4),
        shared="sales: 1200 rows\nregion: text\nquarter: text\nrevenue: number",
    )


SCRIPT = "document.title='attacked'"
ATTACKS = (
    f"<script>{SCRIPT}</script>",
    f'<img src=x onerror="{SCRIPT}">',
    f'</pre></code></td></section></details></main></style></title><svg onload="{SCRIPT}">',
    f'"\'><a href="javascript:{SCRIPT}" id=attack>x</a>',
    f"[x](javascript:{SCRIPT}) ![y](https://example.com/y.png) <https://example.com/>",
    f'<iframe srcdoc="<script>parent.{SCRIPT}</script>"></iframe>',
    '<meta http-equiv=refresh content="0;url=https://example.com/"><base href=https://example.com/>',
    "--><!-- ]]> \u202eturned\u202c \x00 \x1b[31m \ud800",
    "```</code>\n<style>*{display:none}</style>\n```",
)
ATTACK = "\n".join(ATTACKS)


def make_hostile_result() -> AnalysisResult:
    """An analysis in which everything that a model, a program or a file wrote tries to act."""
    plan = Plan(
        approach=ATTACK,
        tasks=(
            PlanTask(id="t1", tool=ATTACK, query=ATTACK),
            PlanTask(id=ATTACKS[0], tool="py_executor", query=ATTACK, needs=("t1",)),
        ),
    )
    method = Methodology(
        primary_approach=ATTACK,
        methods=[ATTACK],
        formulas=[ATTACK],
        step_by_step_process=[ATTACK],
        required_libraries=[ATTACK],
        data_transformation=ATTACK,
        recommended_function_paths=[ATTACK],
    )
    attempt = Attempt("runtime", ATTACK, 0.2, 60.0, ATTACK, ErrorContext(ATTACK, ATTACK, 1, ATTACK, ATTACK, (ATTACK,)))
    tasks = [
        TaskExecution(
            task.id,
            task.tool,
            ATTACK,
            task.needs,
            status="failed",
            result=ATTACK + " 12.5",
            value={ATTACK: [ATTACK]},
            error=ATTACK,
            code=ATTACK,
            methodology_data=method,
            extracted_data=ExtractedData(
                extracted_values={ATTACK: ATTACK}, data_format=ATTACK, transformations_applied=[ATTACK]
            ),
            output=ATTACK,
            figures=(Image(ATTACK.encode("utf-8", "replace"), "image/svg+xml"), make_figure()),
            checks=(ResultCheck(ATTACK, False, ATTACK),),
            attempts=(attempt, attempt),
            notes=(ATTACK,),
        )
        for task in plan.tasks
    ]
    record = PlanRecord(plan, (plan, Plan(approach=ATTACK)), (ATTACK,), ATTACK)
    return AnalysisResult(
        question=ATTACK,
        output_entries=[
            OutputEntry("plan", record),
            OutputEntry("complexity", {ATTACK: ATTACK}),
            *(OutputEntry("task_execution", task) for task in tasks),
        ],
        answer=f"{ATTACK}\n\nIt is 12.5 and 99.9.\n\n" + "\n\n".join(ATTACKS),
        key_findings=ATTACKS,
        focused_answer=FocusedAnswer(ATTACK, ATTACK, ATTACK),
        stopped=ATTACK,
        notices=(ATTACK,),
        shared=ATTACK,
    )
