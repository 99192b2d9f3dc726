"""`py_executor`: a task becomes a methodology, data, code that is checked and run in the sandbox, and a result.

`executor` goes through the stages; `prompts` and `stages` hold what a model is asked and how it answers; `indentation`,
`refusals`, `error_context` and `harness` tell what is wrong with code, and `retries` counts what may still be tried.
"""
