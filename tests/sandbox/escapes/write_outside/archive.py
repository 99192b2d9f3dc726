"""Unpack an archive whose member climbs out of the working folder.

family: write outside
canary: folder
stops: full, container
root: no
"""

import io
import os
import tarfile

buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w") as archive:
    member = tarfile.TarInfo("../" * 40 + os.path.relpath(FOLDER + "/unpacked", "/"))
    member.size = 4
    archive.addfile(member, io.BytesIO(b"evil"))
buffer.seek(0)
tarfile.open(fileobj=buffer).extractall(filter="fully_trusted")
