"""lean-memory: each text one fact in its own store, searched through Memory.search.

Its extraction is left out, since it keeps only what it takes for facts; its embedder is its own
stand-in (a hash), so that no time goes into a model.

    lean_memory_search.py RECORDS.jsonl QUERIES.jsonl K FOLDER DIMS
"""
import sys
import time
from importlib.metadata import version

import common

sys.modules["sqlite3"] = common.sqlite()


def main(records, queries, k, folder, dims):
    from lean_memory.embed.fake import FakeEmbedder
    from lean_memory.memory import Memory
    from lean_memory.types import Entity, Episode, Fact, new_id
    k, dims, namespace = int(k), int(dims), "bench"
    embedder = FakeEmbedder(dim=dims, coarse_dim=min(dims, 256))
    records, queries = common.records(records), [one["text"] for one in common.records(queries)]
    memory = Memory(folder, embedder=embedder)
    store = memory._store(namespace)
    speakers = {one["speaker"] for one in records}
    speakers = {name: store.upsert_entity(Entity(namespace=namespace, name=name, type=None))
                for name in sorted(speakers)}
    numbers = {}

    def add(number, one):
        at = one["at_ms"]
        episode = Episode(namespace=namespace, raw=one["text"], t_ref=at, source="user")
        store.add_episode(episode)
        fact = Fact(id=new_id(), namespace=namespace, subject_id=speakers[one["speaker"]].id,
                    predicate="said", object_literal=None, fact_text=one["text"], valid_at=at,
                    episode_id=episode.id, confidence=1.0, salience=5.0, ingested_at=at,
                    created_at=at)
        store.add_fact(fact, *embedder.embed_with_coarse(one["text"]))
        numbers[fact.id] = number

    def insert():
        for start in range(0, len(records), 1000):
            with store.batch():
                for number in range(start, min(start + 1000, len(records))):
                    add(number, records[number])

    adds = common.rate(insert, len(records))
    bytes_in_files = common.size(folder)
    store.close()
    memory = Memory(folder, embedder=embedder)

    def search(query):
        return [numbers[one.fact.id] for one in memory.search(namespace, query, k=k)]

    began, thread = time.perf_counter_ns(), time.thread_time_ns()
    search(queries[0])
    first = (time.perf_counter_ns() - began) / 1e3
    first_cpu = (time.thread_time_ns() - thread) / 1e3
    ids, wall, cpu = common.timed(search, queries)
    common.say("lean-memory", version("lean-memory"), inserts_per_s=adds, wall_us=wall,
               cpu_us=cpu, ids=ids, first_us=first, first_cpu_us=first_cpu, file_bytes=bytes_in_files,
               resident_bytes=common.resident())


main(*sys.argv[1:])
