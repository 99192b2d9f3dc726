"""Many questions at once: a pipeline is immutable, so one serves them all, and a failure doesn't stop the others.

At most two run at the same time, and each stops after four rounds or a minute.

    $ python examples/batch.py
    12 * 34 = 408        2 calls to the model
    7 + 8 = 15           2 calls to the model
    9 * 9 = 81           2 calls to the model
    100 - 58 = 42        2 calls to the model
    all: 4 answers, 0 failed
"""

from ferrule import calculator, model

PROBLEMS = ["12 * 34", "7 + 8", "9 * 9", "100 - 58"]


def main() -> None:
    """Ask the model in the package all of them, two at a time."""
    agent = model("embedded").using(calculator).within(rounds=4, seconds=60)
    runs = agent.run_batch_sync([f"What is {problem}?" for problem in PROBLEMS], concurrency=2, errors="keep")
    for problem, run in zip(PROBLEMS, runs, strict=True):
        messages = run.conversation.messages
        results = [message.result.text for message in messages if message.role == "tool"]
        asked = sum(message.role == "assistant" for message in messages)
        print(f"{problem} = {', '.join(results)}".ljust(20), f"{asked} calls to the model")
    failed = sum(run.error is not None for run in runs)
    print(f"all: {len(runs) - failed} answers, {failed} failed")


if __name__ == "__main__":
    main()
