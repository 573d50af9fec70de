"""faiss: IndexFlatIP over f32 vectors, one query at a time.

    faiss_flat.py ROWS.f32 QUERIES.f32 DIMS K
"""
import sys

import common


def main(rows, queries, dims, k):
    import faiss
    faiss.omp_set_num_threads(1)
    dims, k = int(dims), int(k)
    rows, queries = common.vectors(rows, dims), common.vectors(queries, dims)
    index = faiss.IndexFlatIP(dims)

    def search(query):
        return index.search(query.reshape(1, -1), k)[1][0].tolist()

    inserts = common.rate(lambda: index.add(rows), len(rows))
    search(queries[0])
    ids, wall, cpu = common.timed(search, queries)
    common.say("faiss Flat", faiss.__version__, inserts_per_s=inserts, wall_us=wall, cpu_us=cpu,
               ids=ids)


main(*sys.argv[1:])
