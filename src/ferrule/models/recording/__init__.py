"""Records what a model answers in a file, and replays it without the model: for tests without a key or a network.

    model("openai:gpt-4o-mini", record="weather.jsonl")     # or, around any model: record("weather.jsonl", MyModel())
    model(record("weather.jsonl"))                          # replays only

The file is JSON, one row a request, made to be read and kept in version control:

    {"version": 1, "type": "model", "model": "openai:gpt-4o-mini", "capabilities": {…}}
    {"version": 1, "type": "exchange", "id": "…", "model": "openai:gpt-4o-mini", "messages": […], "tools": […],
     "settings": {…}, "events": […], "answer": {…}, "usage": {…}, "stop": "calls"}

A request that continues an earlier one names that exchange in `continues`, and lists only its new messages.
"""

from ferrule.models.recording.model import MODES, VARIABLE, RecordedModel, RecordMode, record

__all__ = ["MODES", "VARIABLE", "RecordMode", "RecordedModel", "record"]
