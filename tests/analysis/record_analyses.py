"""Records the analyses that ship: their code runs in the sandbox, and the answers of models were written by hand.

python tests/analysis/record_analyses.py     # all of them, anew: after a change of a prompt
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))


from staged_model import StagedModel
from written_answers import MODEL, PUBLISHED, WrittenAnalysis
from written_sales import FOLDER as EXAMPLES
from written_sales import SALES

from ferrule.analysis import AnalysisResult, AnalysisSettings, run_analysis
from ferrule.analysis.recording import record_analysis
from ferrule.analysis.recording.writer import find_blob_folder

FOLDER = Path(__file__).parent / "recorded"


def find_shipped(analysis: WrittenAnalysis) -> Path:
    """The recording of an analysis that ships."""
    return (EXAMPLES if analysis is SALES else FOLDER) / f"{analysis.name}.jsonl"


async def record(analysis: WrittenAnalysis, path: Path, folder: Path) -> AnalysisResult:
    """Run and record an analysis; its data are written into `folder`."""
    return await run_analysis(
        analysis.question,
        # By a path from here, so that a replay names the data in the same way, wherever it runs.
        data=[Path(os.path.relpath(analysis.write_data(folder)))],
        model=StagedModel(analysis.answers, name=MODEL),
        settings=AnalysisSettings(**analysis.settings),
        recording=record_analysis(path),
    )


async def main() -> None:
    """Record all of them, or those that are named."""
    for analysis in (SALES, *PUBLISHED):
        if len(sys.argv) > 1 and analysis.name not in sys.argv[1:]:
            continue
        path = find_shipped(analysis)
        path.unlink(missing_ok=True)
        shutil.rmtree(find_blob_folder(path), ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
        # Beside the recording, so that it names no folder of this machine; the file isn't kept.
        result = await record(analysis, path, FOLDER)
        (FOLDER / f"{analysis.name}.csv").unlink(missing_ok=True)
        # Recordings are private; these are published.
        path.chmod(0o644)
        print(f"{path.name}: {result.stopped or 'complete'}, {len(result.tasks)} tasks")
        for task in result.tasks:
            if task.status != "done" or not all(check.passed for check in task.checks):
                print(f"  {task.id}: {task.status} {task.error or ''} {task.checks}")
        for link in result.numbers:
            if link.kind == "not computed":
                print(f"  not computed: {link.text}")


if __name__ == "__main__":
    asyncio.run(main())
