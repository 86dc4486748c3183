"""Chunks: a message is cut by what its queries ask for, and each query sees the piece it needs.

Queries are cleaned by the schema and put into a query tree; the heaviest label paths become the
prefixes of chunks (P, F); the message is cut into its chunks in one pass; each chunk is evaluated
for its own queries, wherever and whenever, and the answers are put together.

Example:
    >>> chunking = Chunking(2)
    >>> for query_id, text in {"q1": "/a/b[x = 1]/c", "q2": "/a/d", "q3": "//e"}.items():
    ...     _ = chunking.register(query_id, text)
    >>> scheme = chunking.scheme()
    >>> message = b"<a><b><x>1</x><c/></b><d/></a>"
    >>> cut = StreamingChunker(scheme).cut([message])
    >>> cut.chunks
    (b'<a><b><x>1</x><c/></b></a>', b'<a><d/></a>')
    >>> evaluator = ChunkEvaluator()
    >>> merged(map(evaluator.evaluate, tasks_of(scheme, message, cut))).query_ids
    ('q1', 'q2')

Schemes and messages that were cut can be files and folders (`pathcast chunk`); it runs no workers.

Source: Lehner and Irmert, *XPath-Aware Chunking of XML-Documents*, BTW 2003.
"""

from pathcast.chunking.cleaning import Alternative, CleanQuery, clean
from pathcast.chunking.cut import Cut
from pathcast.chunking.cut_folder import REST, CutFolder, cut_message, evaluated, open_cut
from pathcast.chunking.evaluation import (
    ChunkAnswer,
    ChunkEvaluator,
    ChunkTask,
    merged,
    tasks_of,
)
from pathcast.chunking.filtering_scheme import CHUNKS_MAX, Chunk, Chunking, FilteringScheme
from pathcast.chunking.names import path_text
from pathcast.chunking.needs import Need
from pathcast.chunking.query_tree import QueryTree, QueryTreeNode
from pathcast.chunking.scheme import Pick, generate_chunking_scheme, picks
from pathcast.chunking.scheme_file import SchemeFile, open_scheme, save_scheme
from pathcast.chunking.streaming import StreamingChunker

__all__ = [
    "CHUNKS_MAX",
    "REST",
    "Alternative",
    "Chunk",
    "ChunkAnswer",
    "ChunkEvaluator",
    "ChunkTask",
    "Chunking",
    "CleanQuery",
    "Cut",
    "CutFolder",
    "FilteringScheme",
    "Need",
    "Pick",
    "QueryTree",
    "QueryTreeNode",
    "SchemeFile",
    "StreamingChunker",
    "clean",
    "cut_message",
    "evaluated",
    "generate_chunking_scheme",
    "merged",
    "open_cut",
    "open_scheme",
    "path_text",
    "picks",
    "save_scheme",
    "tasks_of",
]
