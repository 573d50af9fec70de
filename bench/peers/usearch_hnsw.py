"""usearch: HNSW with f16 vectors, everything else as it comes.

    usearch_hnsw.py ROWS.f32 QUERIES.f32 DIMS K
"""
import sys

import common


def main(rows, queries, dims, k):
    import numpy
    import usearch
    from usearch.index import Index
    dims, k = int(dims), int(k)
    rows, queries = common.vectors(rows, dims), common.vectors(queries, dims)
    index = Index(ndim=dims, metric="ip", dtype="f16")
    keys = numpy.arange(len(rows))

    def search(query):
        return index.search(query, k, threads=1).keys.tolist()

    inserts = common.rate(lambda: index.add(keys, rows, threads=1), len(rows))
    search(queries[0])
    ids, wall, cpu = common.timed(search, queries)
    common.say("usearch HNSW", usearch.__version__, inserts_per_s=inserts, wall_us=wall, cpu_us=cpu,
               ids=ids)


main(*sys.argv[1:])
