"""Recordings: what was asked and answered, in a file, and taken from there without whoever answered.

    model("openai:gpt-4o-mini", record="weather.jsonl")     # or, around any model: record("weather.jsonl", MyModel())
    model(record("weather.jsonl"))                          # replays only

For tests without a key or a network, and for analyses (`ferrule.analysis.recording`), which are recorded by stage. The
file is made to be read and kept in version control: see `rows`.
"""
