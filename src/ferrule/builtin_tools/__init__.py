"""Tools that come with ferrule. `sandbox/` does their work; here they get a name, a schema and an intent.

`calculator`, `python` and `shell` are ready to use; `python_tool` and `shell_tool` make configured ones, and
`PythonSession` keeps variables between calls. Importing them starts nothing.
"""

from ferrule.builtin_tools.calculator_tool import calculator
from ferrule.builtin_tools.python_code import python, python_tool
from ferrule.builtin_tools.python_session import PythonSession
from ferrule.builtin_tools.shell_commands import shell, shell_tool

__all__ = ["PythonSession", "calculator", "python", "python_tool", "shell", "shell_tool"]
