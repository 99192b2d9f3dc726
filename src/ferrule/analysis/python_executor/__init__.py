"""`py_executor`: a task becomes a methodology, data, code that is checked and run in the sandbox, and a result.

`executor` runs tasks, `task_run` goes through the stages of one; `stages` holds what a model is asked and how it
answers; `code_attempt` tries code once: `indentation`, `refusals`, `runs` with its `harness` in the sandbox, and
`error_context` for what went wrong; `retries` counts what may still be tried.
"""
