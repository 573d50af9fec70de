"""sqlite-vec: vec0 with f32 vectors, full scan.

    sqlite_vec_flat.py ROWS.f32 QUERIES.f32 DIMS K
"""
import sys

import common


def main(rows, queries, dims, k):
    import sqlite_vec
    sqlite3 = common.sqlite()
    dims, k = int(dims), int(k)
    rows, queries = common.vectors(rows, dims), common.vectors(queries, dims)
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    db.execute(f"CREATE VIRTUAL TABLE v USING vec0(embedding FLOAT[{dims}])")

    def insert():
        with db:
            db.executemany("INSERT INTO v(rowid, embedding) VALUES (?, ?)",
                           ((i, row.tobytes()) for i, row in enumerate(rows)))

    def search(query):
        found = db.execute("SELECT rowid FROM v WHERE embedding MATCH ? AND k = ? "
                           "ORDER BY distance", (query.tobytes(), k))
        return [row[0] for row in found]

    inserts = common.rate(insert, len(rows))
    search(queries[0])
    ids, wall, cpu = common.timed(search, queries)
    version = db.execute("SELECT vec_version()").fetchone()[0].lstrip("v")
    common.say("sqlite-vec", version, inserts_per_s=inserts, wall_us=wall, cpu_us=cpu, ids=ids)


main(*sys.argv[1:])
