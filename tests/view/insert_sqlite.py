"""Runs one statement on a SQLite file as a program would, and prints what the driver says of it."""

import json
import sqlite3
import sys

given = json.load(sys.stdin)
connection = sqlite3.connect(sys.argv[1], timeout=5)
try:
    if given["values"]:
        # The driver begins a transaction of its own before an insert.
        told = connection.execute(given["sql"], given["values"])
        print(told.fetchall())
        connection.commit()
    elif ";" in given["sql"]:
        connection.isolation_level = None
        for statement in given["sql"].split(";"):
            connection.execute(statement)
    else:
        with connection:
            print(connection.execute(given["sql"]).fetchall())
except (sqlite3.Error, sqlite3.Warning) as error:
    sys.exit(f"{type(error).__name__}: {error}")
finally:
    connection.close()
