"""SQLite FTS5: the texts with the porter tokenizer, BM25, any word of the query.

    fts5.py RECORDS.jsonl QUERIES.jsonl K FOLDER
"""
import os
import re
import sys
import time

import common

WORD = re.compile(r"\w+")


def main(records, queries, k, folder):
    sqlite3 = common.sqlite()
    k, path = int(k), os.path.join(folder, "fts5.db")
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE said(id INTEGER PRIMARY KEY, session TEXT, speaker TEXT, at_ms INTEGER)")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')")

    def insert():
        with db:
            for i, one in enumerate(common.records(records)):
                db.execute("INSERT INTO said VALUES (?, ?, ?, ?)",
                           (i, one["session"], one["speaker"], one["at_ms"]))
                db.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (i, one["text"]))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    count = sum(1 for _ in open(records, encoding="utf-8"))
    adds = common.rate(insert, count)
    db.close()
    queries = [one["text"] for one in common.records(queries)]
    began, thread = time.perf_counter_ns(), time.thread_time_ns()
    db = sqlite3.connect(path)

    def search(query):
        terms = " OR ".join(f'"{word}"' for word in WORD.findall(query))
        found = db.execute(
            "SELECT said.id, session, speaker, at_ms, text FROM words JOIN said ON said.id = words.rowid "
            "WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?", (terms, k))
        return [row[0] for row in found]

    search(queries[0])
    first = (time.perf_counter_ns() - began) / 1e3
    first_cpu = (time.thread_time_ns() - thread) / 1e3
    ids, wall, cpu = common.timed(search, queries)
    common.say("SQLite FTS5", sqlite3.sqlite_version, inserts_per_s=adds, wall_us=wall, cpu_us=cpu,
               ids=ids, first_us=first, first_cpu_us=first_cpu, file_bytes=common.size(folder),
               resident_bytes=common.resident())


main(*sys.argv[1:])
