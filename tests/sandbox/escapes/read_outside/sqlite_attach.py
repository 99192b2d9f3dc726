"""Let the database library open a database of the host.

family: read outside
canary: secret
stops: full, container
root: no
"""

import sqlite3

for row in sqlite3.connect(f"file:{FOLDER}/secret.db?mode=ro", uri=True).execute("select * from secrets"):
    print(row)
