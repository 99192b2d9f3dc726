"""What a run did, in three records: OpenTelemetry's spans, the journal of calls, and the usage. Needs `ferrule[otel]`.

The spans need an SDK, which the program brings and configures: here `opentelemetry-sdk`, with an exporter into memory.

    $ python examples/tracing.py
    span:    chat embedded, finish reasons tool_calls
    span:    execute_tool calculator
    span:    chat embedded, finish reasons stop
    span:    invoke_agent
    journal: started calculator {'expression': '12 * 34'}
    journal: finished calculator ok
    usage:   tokens read and written, in US dollars: 0.0
"""

import tempfile
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ferrule import FileJournal, calculator, model
from ferrule.agent import opentelemetry
from ferrule.execution.journal import read_entries


def main() -> None:
    """Run one question with both records, and print them."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.enable(tracer_provider=provider)  # without an argument: the provider of the process

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls.jsonl"
        with FileJournal(file, who="the example") as journal:
            run = model("embedded").chat("What is 12 * 34?").using(calculator, journal=journal).run_sync()
        entries = list(read_entries(file))

    for span in exporter.get_finished_spans():
        reasons = span.attributes.get("gen_ai.response.finish_reasons")
        print("span:   ", span.name + (f", finish reasons {', '.join(reasons)}" if reasons else ""))
    for entry in entries:
        print("journal:", entry["event"], entry["tool"], entry.get("arguments") or entry.get("status"))
    print("usage:   tokens read and written, in US dollars:", run.cost)


if __name__ == "__main__":
    main()
