"""lean-memory on questions about conversations: each turn a fact, searched through Memory.search.

Its extraction is left out: it keeps too little of what is said to be compared. That a search marks
what it found as used just now is left out, too, so that no question changes the next one's answer.

    locomo_lean_memory.py HISTORY.jsonl QUESTIONS.jsonl K VECTORS.f32 DIMS
"""
import sys
import tempfile
from importlib.metadata import version

import common

sys.modules["sqlite3"] = common.sqlite()


def main(history, questions, k, vectors, dims):
    import numpy
    from lean_memory.embed.base import Embedder
    from lean_memory.memory import Memory
    from lean_memory.types import Entity, Episode, Fact, new_id
    given = common.Given((history, questions), vectors, int(dims))

    class Known(Embedder):
        dim, coarse_dim = int(dims), min(int(dims), 256)

        def embed(self, texts):
            return numpy.stack([given.of(text) for text in texts])

    embedder, numbers, conversations = Known(), {}, common.by_conversation(history)
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(folder, embedder=embedder)
        for namespace, turns in conversations.items():
            store = memory._store(namespace)
            store.touch = lambda *_: None
            speakers = {turn["speaker"] for _, turn in turns}
            speakers = {name: store.upsert_entity(Entity(namespace=namespace, name=name, type=None))
                        for name in sorted(speakers)}
            with store.batch():
                for number, turn in turns:
                    at, text = turn["at_ms"], turn["text"]
                    episode = Episode(namespace=namespace, raw=text, t_ref=at, source="user")
                    store.add_episode(episode)
                    fact = Fact(id=new_id(), namespace=namespace,
                                subject_id=speakers[turn["speaker"]].id, predicate="said",
                                object_literal=None, fact_text=text, valid_at=at,
                                episode_id=episode.id, confidence=1.0, salience=5.0,
                                ingested_at=at, created_at=at)
                    store.add_fact(fact, *embedder.embed_with_coarse(text))
                    numbers[fact.id] = number

        def search(question):
            now = conversations[question["conv"]][-1][1]["at_ms"]
            found = memory.search(question["conv"], question["text"], k=int(k), now=now)
            return [numbers[one.fact.id] for one in found]

        ids = [search(question) for question in common.records(questions)]
    common.say("lean-memory", version("lean-memory"), ids=ids)


main(*sys.argv[1:])
