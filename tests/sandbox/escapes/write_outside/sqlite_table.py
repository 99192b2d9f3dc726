"""Let the database library make a database on the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import sqlite3

sqlite3.connect(FOLDER + "/new.db").execute("create table t (a)")
