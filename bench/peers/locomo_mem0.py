"""mem0 on questions about conversations: each turn added as it is, searched through Memory.search.

It is given the vectors, and `infer=False`: without a language model it extracts nothing. Its keyword
arm is fastembed's Bm25, which would download its list of stop words: it gets that of bm25s. Its
entities need spaCy and a model that no registry has, so they take no part.

    locomo_mem0.py HISTORY.jsonl QUESTIONS.jsonl K VECTORS.f32 DIMS
"""
import os
import sys
import tempfile
from importlib.metadata import version

import common

os.environ.update(MEM0_TELEMETRY="False", ANONYMIZED_TELEMETRY="False",
                  OPENAI_API_KEY="none: nothing is asked of it")


def keywords(folder):
    from bm25s.stopwords import STOPWORDS_EN_PLUS
    from fastembed.sparse.bm25 import Bm25
    return Bm25("Qdrant/bm25", specific_model_path=folder, stopwords=set(STOPWORDS_EN_PLUS))


class Known:
    """An embedder as mem0 wants one."""

    def __init__(self, given):
        self.given = given

    def embed(self, text, memory_action=None):
        return self.given.of(text).tolist()


def main(history, questions, k, vectors, dims):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEM0_DIR"] = folder
        from mem0 import Memory
        store = {"path": os.path.join(folder, "qdrant"), "embedding_model_dims": int(dims)}
        memory = Memory.from_config({
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": os.path.join(folder, "history.db"),
        })
        memory.embedding_model = Known(common.Given((history, questions), vectors, int(dims)))
        memory.vector_store._bm25_encoder = keywords(folder)
        numbers = {}
        for conversation, turns in common.by_conversation(history).items():
            for number, turn in turns:
                message = [{"role": "user", "name": turn["speaker"], "content": turn["text"]}]
                added = memory.add(message, user_id=conversation, infer=False)
                numbers[added["results"][0]["id"]] = number

        def search(question):
            found = memory.search(question["text"], top_k=int(k), threshold=0.0,
                                  filters={"user_id": question["conv"]})
            return [numbers[one["id"]] for one in found["results"]]

        ids = [search(question) for question in common.records(questions)]
    common.say("mem0", version("mem0ai"), ids=ids)


main(*sys.argv[1:])
