"""Let a configuration name what is to be called.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import logging.config

factory = {"()": "builtins.open", "file": SECRET_FILE}
configurator = logging.config.DictConfigurator({"version": 1})
print(configurator.configure_custom(factory).read())
