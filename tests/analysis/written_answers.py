"""Analyses whose model answers were written by hand: question, data, and what a model would answer at each stage.

`record_analyses.py` runs and records them; the recordings ship, and tests check their numbers by other means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Answers = Mapping[str, Any]
MODEL = "written-by-hand"


@dataclass(frozen=True)
class WrittenAnalysis:
    """One analysis: `write_data` writes its file into a folder and returns it."""

    name: str
    question: str
    write_data: Callable[[Path], Path]
    answers: Answers
    settings: dict[str, Any] = field(default_factory=dict)


def plan(approach: str, *tasks: tuple[str, str, str, list[str]], level: str = "moderate") -> Answers:
    """The answers of planning, in the mode quick: one candidate, one round."""
    proposed = [{"id": name, "tool": tool, "query": query, "needs": needs} for name, tool, query, needs in tasks]
    return {
        "analysis/complexity": {"level": level, "reason": "A few steps that build on each other."},
        "analysis/candidates": {"plans": [{"approach": approach, "tasks": proposed}]},
    }


def compute(
    task: str, approach: str, code: str, *checks: tuple[str, str, str], functions: tuple[str, ...], shape: str
) -> Answers:
    """The answers of a Python task's stages; a check is a statement, its kind and its code."""
    listed = [{"states": states, "kind": kind, "code": check} for states, kind, check in checks]
    return {
        f"{task}/methodology": {
            "primary_approach": approach,
            "methods": [approach.split(":")[0]],
            "step_by_step_process": [one.strip() for one in approach.split(";")],
            "required_libraries": sorted({path.partition(".")[0] for path in functions}),
            "recommended_function_paths": list(functions),
        },
        f"{task}/extraction": {"extracted_values": {}, "data_format": "All values stand in the table."},
        f"{task}/tool_query": {"query": approach, "result_format": shape},
        f"{task}/code": {"code": code.strip("\n"), "result_checks": listed},
    }


def answer(text: str, *findings: str, kind: str, value: Any, shown: str) -> Answers:
    """The answers of the synthesis and of the focused answer."""
    return {
        "analysis/synthesis": {"answer": text, "key_findings": list(findings)},
        "analysis/focused_answer": {"answer_type": kind, "answer_value": value, "formatted_answer": shown},
    }


def write_sklearn(name: str) -> Callable[[Path], Path]:
    """Writes a data set that ships with scikit-learn, in its original units, with short column names."""

    def write(folder: Path) -> Path:
        from sklearn import datasets

        options = {"scaled": False} if name == "diabetes" else {}
        frame = getattr(datasets, f"load_{name}")(as_frame=True, **options).frame
        frame.columns = [str(column).removesuffix(" (cm)").replace(" ", "_").replace("/", "_") for column in frame]
        path = folder / f"{name}.csv"
        frame.to_csv(path, index=False)
        return path

    return write


def write_statsmodels(name: str) -> Callable[[Path], Path]:
    """Writes a data set that ships with statsmodels."""

    def write(folder: Path) -> Path:
        import statsmodels.api

        path = folder / f"{name}.csv"
        getattr(statsmodels.api.datasets, name).load_pandas().data.to_csv(path, index=False)
        return path

    return write


IRIS = WrittenAnalysis(
    "iris",
    "Which of the four measurements tells the three species apart best, and how well do they do together?",
    write_sklearn("iris"),
    {
        **plan(
            "Compare the measurements by analysis of variance, and classify with all of them.",
            (
                "t1",
                "py_executor",
                "Compute the F statistic between the species for each measurement.",
                [],
            ),
            (
                "t2",
                "py_executor",
                "Compute the five-fold cross-validated accuracy of a linear discriminant analysis.",
                [],
            ),
        ),
        **compute(
            "t1",
            "One-way analysis of variance for each measurement: its F statistic and p value",
            """
from scipy import stats

table = tables["iris"]
groups = [group for _, group in table.groupby("target")]
result = {}
for column in table.columns[:4]:
    found = stats.f_oneway(*[group[column] for group in groups])
    result[column] = {"F": float(found.statistic), "p": float(found.pvalue)}
""",
            ("every F statistic is positive", "range", "all(one['F'] > 0 for one in result.values())"),
            ("every p value lies between 0 and 1", "range", "all(0 <= one['p'] <= 1 for one in result.values())"),
            functions=("scipy.stats.f_oneway",),
            shape="for each measurement F and p",
        ),
        **compute(
            "t2",
            "Linear discriminant analysis: mean accuracy over five stratified folds",
            """
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

table = tables["iris"]
scores = cross_val_score(LinearDiscriminantAnalysis(), table.iloc[:, :4], table["target"], cv=5)
result = {"accuracy": float(scores.mean()), "folds": [float(one) for one in scores]}
""",
            ("an accuracy lies between 0 and 1", "range", "0 <= result['accuracy'] <= 1"),
            functions=(
                "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
                "sklearn.model_selection.cross_val_score",
            ),
            shape="accuracy as a share, and those of the folds",
        ),
        **answer(
            "Petal length tells the species apart best: its F statistic is 1180.2, before petal width with 960.0. The "
            "sepals say far less: 119.3 for their length and 49.2 for their width. Together the four measurements "
            "classify 98.0% of the flowers right.",
            "Petal length has the largest F statistic, 1180.2.",
            "A linear discriminant analysis of all four is right for 98.0%.",
            kind="text",
            value="petal_length",
            shown="petal length, with an F statistic of 1180.2",
        ),
    },
    {"mode": "quick"},
)

DIABETES = WrittenAnalysis(
    "diabetes",
    "Which of the ten baseline variables are related to the progression of the disease once the others are held "
    "constant, and how much do all of them explain?",
    write_sklearn("diabetes"),
    {
        **plan(
            "One regression on all variables; then its coefficients are judged.",
            ("t1", "py_executor", "Fit an ordinary least squares regression of target on the ten other columns.", []),
            (
                "t2",
                "logic_kernel",
                "Judge which coefficients differ from zero, and what limits that.",
                ["t1"],
            ),
            level="straightforward",
        ),
        **compute(
            "t1",
            "Ordinary least squares with an intercept: coefficients, p values and R squared",
            """
import statsmodels.api as sm

table = tables["diabetes"]
fitted = sm.OLS(table["target"], sm.add_constant(table.drop(columns="target"))).fit()
result = {
    "r_squared": float(fitted.rsquared),
    "rows": int(fitted.nobs),
    "coefficients": {name: float(value) for name, value in fitted.params.items()},
    "p_values": {name: float(value) for name, value in fitted.pvalues.items()},
}
""",
            ("R squared lies between 0 and 1", "range", "0 <= result['r_squared'] <= 1"),
            (
                "the residuals of the fit add up to zero",
                "second_method",
                "abs(float(fitted.resid.sum())) < 0.001",
            ),
            functions=("statsmodels.api.OLS", "statsmodels.api.add_constant"),
            shape="r_squared, rows, coefficients and p_values by name",
        ),
        "t2/logic_kernel": {
            "conclusion": "sex, bmi, bp and s5 have coefficients that can't be explained by chance at the level of 5%.",
            "steps": [
                {"statement": "Their p values are below 0.05, and those of the other six aren't.", "follows_from": "t1"}
            ],
            "confidence": 0.8,
            "limitations": ["s1 to s6 are correlated, so single coefficients of theirs say little."],
        },
        **answer(
            "Four variables stay related to the progression when the others are held constant: bmi (5.60 a unit), "
            "bp (1.12), s5 (68.5) and sex (-22.9). All ten together explain 51.8% of the variance over 442 patients.",
            "bmi, bp, s5 and sex have p values below 0.05.",
            "The ten variables explain 51.8% of the variance.",
            kind="list",
            value=["bmi", "bp", "s5", "sex"],
            shown="bmi, bp, s5 and sex",
        ),
    },
    {"mode": "quick"},
)

WINE = WrittenAnalysis(
    "wine",
    "How many dimensions do the thirteen measurements of the wines really have, and do the cultivars show without "
    "being told?",
    write_sklearn("wine"),
    {
        **plan(
            "Principal components for the dimensions, and a clustering that is compared with the cultivars.",
            (
                "t1",
                "py_executor",
                "Compute the cumulative variance of the principal components, standardised.",
                [],
            ),
            (
                "t2",
                "py_executor",
                "Cluster the standardised measurements into three groups; compare with target.",
                [],
            ),
        ),
        **compute(
            "t1",
            "Principal component analysis: cumulative explained variance after standardising",
            """
import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

scaled = StandardScaler().fit_transform(tables["wine"].drop(columns="target"))
shares = np.cumsum(PCA().fit(scaled).explained_variance_ratio_)
result = {
    "cumulative": [float(share) for share in shares],
    "components_for_80_percent": int(np.argmax(shares >= 0.8)) + 1,
}
""",
            ("the shares add up to one", "range", "abs(result['cumulative'][-1] - 1) < 1e-9"),
            functions=("sklearn.decomposition.PCA", "sklearn.preprocessing.StandardScaler"),
            shape="cumulative shares, and how many components reach 80 percent",
        ),
        **compute(
            "t2",
            "K-means with three clusters and a fixed seed: adjusted Rand index against the cultivars",
            """
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

table = tables["wine"]
scaled = StandardScaler().fit_transform(table.drop(columns="target"))
labels = KMeans(n_clusters=3, n_init=10, random_state=0).fit_predict(scaled)
result = {
    "adjusted_rand_index": float(adjusted_rand_score(table["target"], labels)),
    "sizes": sorted(int((labels == one).sum()) for one in range(3)),
}
""",
            ("all wines are in a cluster", "second_method", "sum(result['sizes']) == len(table)"),
            functions=("sklearn.cluster.KMeans", "sklearn.metrics.adjusted_rand_score"),
            shape="adjusted_rand_index and the sizes of the clusters",
        ),
        **answer(
            "Two principal components hold 55.4% of the variance, and 5 reach 80%. The cultivars show by themselves: a "
            "clustering into three groups agrees with them with an adjusted Rand index of 0.897.",
            "5 components are needed for 80% of the variance.",
            "The clusters agree with the cultivars: adjusted Rand index 0.897.",
            kind="number",
            value=5,
            shown="5 components for 80% of the variance",
        ),
    },
    {"mode": "quick"},
)

MACRODATA = WrittenAnalysis(
    "macrodata",
    "How much does unemployment change in a quarter for each percent by which real GDP grows?",
    write_statsmodels("macrodata"),
    {
        **plan(
            "Okun's law: recall it, and estimate it from the table.",
            (
                "t1",
                "knowledge_retriever",
                "What does Okun's law say, and how sure is its coefficient?",
                [],
            ),
            (
                "t2",
                "py_executor",
                "Regress the quarterly change of unemp on the growth of realgdp in percent.",
                [],
            ),
            level="straightforward",
        ),
        "t1/knowledge_retriever": {
            "summary": "Okun's law relates the growth of output to the change of unemployment: faster growth, falling "
            "unemployment.",
            "facts": [
                {"statement": "It is an empirical regularity, not a law.", "certainty": "high", "field": "economics"}
            ],
            "uncertain": ["The coefficient depends on the period and on how it is estimated."],
            "confidence": 0.8,
        },
        **compute(
            "t2",
            "Okun's law in differences: ordinary least squares of the change in unemployment on log growth in percent",
            """
import numpy as np
import statsmodels.api as sm

table = tables["macrodata"].sort_values(["year", "quarter"])
growth = (100 * np.log(table["realgdp"]).diff()).dropna()
change = table["unemp"].diff().dropna()
fitted = sm.OLS(change, sm.add_constant(growth.rename("growth"))).fit()
constant, slope = float(fitted.params["const"]), float(fitted.params["growth"])
result = {
    "slope": slope,
    "standard_error": float(fitted.bse["growth"]),
    "constant": constant,
    "growth_for_stable_unemployment": -constant / slope,
    "r_squared": float(fitted.rsquared),
    "quarters": int(fitted.nobs),
}
""",
            ("unemployment falls when output grows", "range", "result['slope'] < 0"),
            (
                "the slope is the covariance over the variance",
                "second_method",
                "abs(np.cov(growth, change)[0, 1] / np.var(growth, ddof=1) - result['slope']) < 1e-9",
            ),
            functions=("statsmodels.api.OLS", "statsmodels.api.add_constant"),
            shape="slope in percentage points for a percent of growth, with its standard error",
        ),
        **answer(
            "Unemployment falls by 0.27 percentage points in a quarter for each percent of growth (error error 0.020, "
            "202 quarters), which explains 47.1% of its changes. It is stable when output grows by 0.85% in a quarter.",
            "The slope is -0.27 percentage points for a percent of growth.",
            "Growth of 0.85% in a quarter keeps unemployment stable.",
            kind="number",
            value=-0.2685,
            shown="-0.27 percentage points",
        ),
    },
    {"mode": "quick"},
)

SPECTOR = WrittenAnalysis(
    "spector",
    "Did the personalised teaching programme (PSI) raise the odds of a better grade, with ability held constant?",
    write_statsmodels("spector"),
    {
        **plan(
            "A logit model with the programme, the grades and the test score; and the raw shares beside it.",
            ("t1", "py_executor", "Compute the share of better grades with and without PSI.", []),
            ("t2", "py_executor", "Fit a logit model of GRADE on GPA, TUCE and PSI.", []),
            (
                "t3",
                "logic_kernel",
                "Compare the raw and the adjusted difference. Does PSI have an effect?",
                ["t1", "t2"],
            ),
        ),
        **compute(
            "t1",
            "Shares: better grades among students with and without the programme",
            """
table = tables["spector"]
shares = table.groupby("PSI")["GRADE"].mean()
result = {"without": float(shares[0]), "with": float(shares[1]), "students": len(table)}
""",
            ("a share lies between 0 and 1", "range", "0 <= result['without'] <= 1 and 0 <= result['with'] <= 1"),
            functions=("pandas.DataFrame.groupby",),
            shape="shares with and without the programme",
        ),
        **compute(
            "t2",
            "Logistic regression: coefficients, p values and odds ratios",
            """
import numpy as np
import statsmodels.api as sm

table = tables["spector"]
fitted = sm.Logit(table["GRADE"], sm.add_constant(table[["GPA", "TUCE", "PSI"]])).fit(disp=0)
result = {
    "coefficients": {name: float(value) for name, value in fitted.params.items()},
    "p_values": {name: float(value) for name, value in fitted.pvalues.items()},
    "odds_ratio_psi": float(np.exp(fitted.params["PSI"])),
}
""",
            ("the fit has converged", "other", "bool(fitted.mle_retvals['converged'])"),
            ("an odds ratio is positive", "range", "result['odds_ratio_psi'] > 0"),
            functions=("statsmodels.api.Logit",),
            shape="coefficients, p_values, and the odds ratio of PSI",
        ),
        "t3/logic_kernel": {
            "conclusion": "The programme has an effect that ability doesn't explain.",
            "steps": [
                {"statement": "The raw shares differ.", "follows_from": "t1"},
                {"statement": "With GPA and TUCE held constant the p value is below 0.05.", "follows_from": "t2"},
            ],
            "hypotheses": [
                {"statement": "PSI helps", "support": ["t2"], "against": [], "likelihood": 0.85},
                {"statement": "abler students chose PSI", "support": [], "against": ["t2"], "likelihood": 0.15},
            ],
            "confidence": 0.7,
            "limitations": ["There are few students."],
        },
        **answer(
            "Yes. With ability held constant, the programme multiplied the odds of a better grade by 10.8 (p = 0.025). "
            "The raw shares say the same: 57.1% with it and 16.7% without it, over 32 students.",
            "The odds ratio of PSI is 10.8.",
            "57.1% improved with the programme, and 16.7% without it.",
            kind="yes_no",
            value=True,
            shown="yes, the odds were 10.8 times as high",
        ),
    },
    {"mode": "quick"},
)

PUBLISHED = (IRIS, DIABETES, WINE, MACRODATA, SPECTOR)
"""Those over data that ship with scikit-learn or statsmodels."""
