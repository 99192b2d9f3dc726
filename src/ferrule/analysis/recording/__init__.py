"""Records every model answer and every run of an analysis, and replays them.

    run_analysis(question, recording=record_analysis(path))     # recorded as it goes, complete or not
    run_analysis(question, recording=replay_analysis(path))     # the same result, without a model or code that runs

`rows` is the file's format, `writer` and `source` write and read it, `session` takes the place of a model.
"""

from ferrule.analysis.recording.recording import Recording, record_analysis, replay_analysis

__all__ = ["Recording", "record_analysis", "replay_analysis"]
