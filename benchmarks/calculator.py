"""Times the calculator against the seed's own method, a character filter, a word list, `eval` and an alarm.

    python benchmarks/calculator.py [--json] [--rounds 40]

Both sides run the same fixed expressions, one after the other within each round, in one process; a figure is the
median over the rounds of CPU time per call. Runs on the main thread only, because the seed's alarm does.
"""

import argparse
import json
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ferrule.arithmetic.evaluate import calculate

EXPRESSIONS = {
    "integers": [
        "123456 * 789",
        "16 - 3 - 4",
        "48 / 2",
        "80000 + 50000",
        "(100 - 20) / 4",
        "240 * 15 / 100",
        "(5 + 3) * (12 - 4) / 2",
        "987654321 - 123456789",
        "1,234,567 + 89",
        "7 // 2 + 7",
    ],
    "decimals": [
        "0.1 + 0.2",
        "0.15 * 240",
        "123.45 * 67.89",
        "19.99 * 3 + 4.5",
        "2.5 / 0.5",
        "1.5 * 1.5 * 1.5",
        "100 * 1.05 - 3.25",
        "9.75 - 0.8",
    ],
    "strings": [
        '"banana".count("a")',
        '"strawberry".count("r")',
        "'hello'.count('l')",
        '"Anna".count("a")',
    ],
}
ALLOWED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'\"()._ "
DANGEROUS = ["__", "import", "exec", "eval", "compile", "open", "file", "input", "raw_input"]
DANGEROUS += ["globals", "locals", "vars", "dir", "getattr", "setattr", "delattr", "hasattr"]


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """The seed's time limit: an alarm whose handler raises."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    yield
    signal.alarm(0)


def eval_with_alarm(expression: str) -> object:
    """The seed's evaluation; None for whatever goes wrong."""
    try:
        with alarm(3), warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return eval(expression, {"__builtins__": {}}, {})
    except Exception:  # noqa: BLE001 - the seed's method is measured as it is
        signal.alarm(0)
        return None


def seed_method(expression: str) -> object:
    """The seed's calculator, with its holes."""
    expression = expression.replace(",", "")
    if all([character in "0123456789*+-/.() " for character in expression]):  # noqa: C419 - as the seed has it
        return None if "**" in expression else eval_with_alarm(expression)
    if not all([character in ALLOWED for character in expression]):  # noqa: C419 - as the seed has it
        return None
    lowered = expression.lower()
    if any(word in lowered for word in DANGEROUS) or ".count(" not in expression:
        return None
    return eval_with_alarm(expression)


def microseconds(method: Callable[[str], object], expression: str, calls: int) -> float:
    """CPU time of one call, in microseconds."""
    begin = time.process_time_ns()
    for _ in range(calls):
        method(expression)
    return (time.process_time_ns() - begin) / calls / 1000


def measure(rounds: int, calls: int) -> dict[str, dict[str, tuple[float, float]]]:
    """For each kind and expression, the median microseconds of ferrule and of the seed's method."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for turn in range(rounds):
        for kind, expressions in EXPRESSIONS.items():
            for expression in expressions:
                pair = [(0, calculate), (1, seed_method)]
                taken = [0.0, 0.0]
                for place, method in pair if turn % 2 else reversed(pair):
                    taken[place] = microseconds(method, expression, calls)
                times.setdefault((kind, expression), []).append((taken[0], taken[1]))
    result: dict[str, dict[str, tuple[float, float]]] = {}
    for (kind, expression), samples in times.items():
        ours, theirs = zip(*samples, strict=True)
        result.setdefault(kind, {})[expression] = (statistics.median(ours), statistics.median(theirs))
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--rounds", type=int, default=40, help="rounds, both methods in each (default: 40)")
    parser.add_argument("--calls", type=int, default=50, help="calls of each expression in a round (default: 50)")
    options = parser.parse_args()
    figures = measure(options.rounds, options.calls)
    ratios = {kind: [theirs / ours for ours, theirs in expressions.values()] for kind, expressions in figures.items()}
    summary = {kind: statistics.median(values) for kind, values in ratios.items()}
    summary["all"] = statistics.median(value for values in ratios.values() for value in values)
    worst_decimal = min(ratios["decimals"])
    if options.json:
        flat = {
            kind: {text: {"ferrule_us": ours, "seed_us": theirs} for text, (ours, theirs) in expressions.items()}
            for kind, expressions in figures.items()
        }
        json.dump({"median_ratio": summary, "worst_decimal_ratio": worst_decimal, "expressions": flat}, sys.stdout)
        print()
        return
    print(f"{'expression':<28}{'ferrule µs':>12}{'seed µs':>10}{'ratio':>8}")
    for kind, expressions in figures.items():
        print(f"-- {kind}")
        for text, (ours, theirs) in expressions.items():
            print(f"{text:<28}{ours:>12.1f}{theirs:>10.1f}{theirs / ours:>7.2f}x")
    print("-- median of the ratios (seed / ferrule)")
    for kind, ratio in summary.items():
        goal = {"all": "  (goal: 1.5x)", "decimals": "  (goal: 0.8x)"}.get(kind, "")
        print(f"{kind:<28}{ratio:>29.2f}x{goal}")
    print(f"{'slowest of the decimals':<28}{worst_decimal:>29.2f}x")


if __name__ == "__main__":
    main()
