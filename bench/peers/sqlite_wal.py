"""SQLite in WAL mode, synchronous FULL: durable inserts, one or several a commit.

    sqlite_wal.py DATABASE COUNT BYTES GROUP
"""
import sqlite3
import sys

import common


def main(path, count, size, group):
    count, size, group = int(count), int(size), int(group)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS said(id INTEGER PRIMARY KEY, text TEXT)")
    text = "x" * size

    def insert():
        for start in range(0, count, group):
            db.execute("BEGIN IMMEDIATE")
            for _ in range(start, min(start + group, count)):
                db.execute("INSERT INTO said(text) VALUES (?)", (text,))
            db.execute("COMMIT")

    adds = common.rate(insert, count)
    db.close()
    common.say("SQLite WAL FULL", sqlite3.sqlite_version, inserts_per_s=adds)


main(*sys.argv[1:])
