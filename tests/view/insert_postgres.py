"""Runs one statement on a PostgreSQL server as a program would, and prints what the driver says of it."""

import json
import sys

import psycopg

given = json.load(sys.stdin)
try:
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute(f"set session authorization {given['role']}")
        if given["values"]:
            with connection.transaction():
                told = connection.execute(given["sql"], given["values"])
        else:
            told = connection.execute(given["sql"])
        print(told.rowcount)
        if told.description:
            print(told.fetchall())
except psycopg.Error as error:
    sys.exit(f"{type(error).__name__}: {error}")
