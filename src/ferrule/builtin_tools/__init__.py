"""Tools that come with ferrule. What they do is done in `sandbox/`; here it gets a name, a schema and an intent.

`calculator`, `python` and `shell` are ready to be offered; `python_tool` and `shell_tool` make others like them, and
`PythonSession` keeps variables from call to call. Importing them starts nothing.
"""

from ferrule.builtin_tools.calculator_tool import calculator
from ferrule.builtin_tools.python_code import python, python_tool
from ferrule.builtin_tools.python_session import PythonSession
from ferrule.builtin_tools.shell_commands import shell, shell_tool

__all__ = ["PythonSession", "calculator", "python", "python_tool", "shell", "shell_tool"]
