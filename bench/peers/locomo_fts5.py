"""SQLite FTS5 on questions about conversations: the porter tokenizer, BM25, any word of the question.

    locomo_fts5.py HISTORY.jsonl QUESTIONS.jsonl K
"""
import re
import sys

import common

WORD = re.compile(r"\w+")


def main(history, questions, k):
    sqlite3 = common.sqlite()
    tables = {}
    for conversation, turns in common.by_conversation(history).items():
        db = sqlite3.connect(":memory:")
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61')")
        db.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)",
                       ((number, turn["text"]) for number, turn in turns))
        tables[conversation] = db

    def search(question):
        terms = " OR ".join(f'"{word}"' for word in WORD.findall(question["text"]))
        found = tables[question["conv"]].execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?",
            (terms, int(k)))
        return [row[0] for row in found]

    ids = [search(question) for question in common.records(questions)]
    common.say("SQLite FTS5", sqlite3.sqlite_version, ids=ids)


main(*sys.argv[1:])
