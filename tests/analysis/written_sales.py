"""The analysis that the documents show: `examples/analysis/sales.csv`, with answers that were written by hand."""

from __future__ import annotations

from pathlib import Path

from written_answers import WrittenAnalysis, answer, compute

FOLDER = Path(__file__).parents[2] / "examples" / "analysis"
SAME_REGIONS = """
all(
    (stats.mannwhitneyu(*(table[(table["region"] == one) & (quarter == number)]["revenue"] for number in (2, 3))).pvalue
    * 4 < 0.05) == (result[one]["p_holm"] < 0.05)
    for one in regions
)
"""

SALES = WrittenAnalysis(
    "sales",
    "Which region drives the Q3 drop, and is it significant?",
    lambda _: FOLDER / "sales.csv",
    {
        "analysis/complexity": {"level": "complex", "reason": "A decomposition, a test for each region, and a chart."},
        "analysis/candidates": {
            "plans": [
                {
                    "approach": "Decompose the change by region, test each region's weeks, and weigh the explanations.",
                    "tasks": [
                        {
                            "id": "t1",
                            "tool": "py_executor",
                            "query": "Compute the revenue of each region in Q2 and Q3, and how it changed.",
                            "needs": [],
                        },
                        {
                            "id": "t2",
                            "tool": "py_executor",
                            "query": "Test for each region whether its weekly revenue differs between Q2 and Q3, with "
                            "correction for four tests.",
                            "needs": [],
                        },
                        {
                            "id": "t3",
                            "tool": "py_executor",
                            "query": "Draw the weekly revenue of the four regions, with the end of Q2 marked.",
                            "needs": [],
                        },
                        {
                            "id": "t4",
                            "tool": "logic_kernel",
                            "query": "Does one region explain the drop, or do several? Is orders or price behind it?",
                            "needs": ["t1", "t2"],
                        },
                    ],
                },
                {
                    "approach": "One regression with the quarter and the region.",
                    "tasks": [
                        {
                            "id": "t1",
                            "tool": "py_executor",
                            "query": "Regress revenue on region, quarter and their interaction.",
                            "needs": [],
                        },
                    ],
                },
            ]
        },
        "analysis/evaluation": {
            "scores": [
                {"plan": 1, "coverage": 9, "feasibility": 9, "efficiency": 8},
                {"plan": 2, "coverage": 6, "feasibility": 9, "efficiency": 9},
            ],
            "best": 1,
            "reason": "It answers both halves of the question, and its tasks don't wait for each other.",
        },
        **compute(
            "t1",
            "Sums: revenue by region and quarter, and each region's share of the change",
            """
import pandas as pd

table = tables["sales"]
quarter = "Q" + pd.to_datetime(table["week"]).dt.quarter.astype(str)
totals = table.pivot_table(index="region", columns=quarter, values="revenue", aggfunc="sum")
change = totals["Q3"] - totals["Q2"]
result = {
    region: {
        "Q2": round(float(totals.loc[region, "Q2"]), 2),
        "Q3": round(float(totals.loc[region, "Q3"]), 2),
        "change": round(float(change[region]), 2),
        "change_percent": round(float(100 * change[region] / totals.loc[region, "Q2"]), 2),
    }
    for region in totals.index
}
result["total"] = {
    "Q2": round(float(totals["Q2"].sum()), 2),
    "Q3": round(float(totals["Q3"].sum()), 2),
    "change": round(float(change.sum()), 2),
    "change_percent": round(float(100 * change.sum() / totals["Q2"].sum()), 2),
}
""",
            (
                "the regions add up to the total",
                "second_method",
                "abs(table['revenue'].sum() - result['total']['Q2'] - result['total']['Q3']) < 0.02",
            ),
            ("revenue is positive", "range", "all(one['Q2'] > 0 and one['Q3'] > 0 for one in result.values())"),
            functions=("pandas.DataFrame.pivot_table", "pandas.to_datetime"),
            shape="for each region and the total: Q2, Q3, change and change_percent, revenue in the table's unit",
        ),
        **compute(
            "t2",
            "Welch's t-test for each region on its 13 weeks a quarter; Holm's correction for four tests",
            """
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

table = tables["sales"]
quarter = pd.to_datetime(table["week"]).dt.quarter
regions = sorted(table["region"].unique())
p_values = []
for region in regions:
    weeks = table["region"] == region
    after, before = (table[weeks & (quarter == number)]["revenue"] for number in (3, 2))
    p_values.append(float(stats.ttest_ind(after, before, equal_var=False).pvalue))
corrected = multipletests(p_values, method="holm")[1]
result = {region: {"p": p, "p_holm": float(q)} for region, p, q in zip(regions, p_values, corrected)}
""",
            ("corrected p values aren't smaller", "range", "all(one['p_holm'] >= one['p'] for one in result.values())"),
            (
                "a rank test finds the same regions",
                "second_method",
                SAME_REGIONS,
            ),
            functions=("scipy.stats.ttest_ind", "statsmodels.stats.multitest.multipletests"),
            shape="for each region p and p_holm",
        ),
        "t2/code/0": {
            "code": 'table = tables["sales"]\nresult = {name: len(group) for name, group in table.groupby("Region")}',
            "result_checks": [],
        },
        **compute(
            "t3",
            "A line chart: weekly revenue by region, with the end of Q2 as a vertical line",
            """
import matplotlib.pyplot as plt
import pandas as pd

table = tables["sales"].assign(week=lambda one: pd.to_datetime(one["week"]))
weekly = table.pivot(index="week", columns="region", values="revenue")
figure, axes = plt.subplots(figsize=(7, 3.5))
weekly.plot(ax=axes)
axes.axvline(pd.Timestamp(2025, 7, 3), color="gray", linestyle="--")
axes.set_ylabel("weekly revenue")
result = {"weeks": len(weekly)}
""",
            ("there are 26 weeks", "other", "result['weeks'] == 26"),
            functions=("pandas.DataFrame.pivot", "matplotlib.pyplot.subplots"),
            shape="the figure, and how many weeks it shows",
        ),
        "t4/logic_kernel": {
            "conclusion": "West alone explains the drop; the other regions together nearly balance each other.",
            "steps": [
                {"statement": "West fell by more than the total did.", "follows_from": "t1"},
                {"statement": "Only West's weeks differ beyond chance after correction.", "follows_from": "t2"},
            ],
            "hypotheses": [
                {"statement": "West alone", "support": ["t1", "t2"], "against": [], "likelihood": 0.95},
                {"statement": "a drop of all regions", "support": [], "against": ["t1"], "likelihood": 0.05},
            ],
            "confidence": 0.9,
            "limitations": ["Half a year can't tell a lasting change from a season."],
        },
        "analysis/iteration_1": {
            "decision": "stop",
            "reason": "Both halves of the question are answered.",
            "tasks": [],
        },
        **answer(
            "West drives the drop. Its revenue fell by 132,984.63 from Q2 to Q3, or 16.6%, while the total fell by "
            "97,631.53 (3.8%): the other three regions together gained. The change of West is significant (Welch's "
            "t-test of its weeks, p = 3.9e-10 after Holm's correction); that of no other region is, the nearest being "
            "South with p = 0.069. Half a year can't tell a lasting change from a season.",
            "West lost 16.6% of its revenue, more than the whole company lost.",
            "Only West's change is significant: p = 3.9e-10 after correction for four tests.",
            kind="text",
            value="West",
            shown="West, down 16.6%, p = 3.9e-10",
        ),
    },
)
