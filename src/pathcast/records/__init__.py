"""Files of one root element with millions of records, cut into a message a record.

    <orders xmlns="urn:o" day="1">          a record of /o:orders/o:order becomes the message
      <order id="7"><item/></order>             <orders xmlns="urn:o" day="1"><order id="7">...
      <order id="8"/>                           ...</order></orders>
    </orders>

A message holds the start tags of the record's ancestors as they are written, the bytes of the
record, and the end tags. So attributes of ancestors, namespaces, `xml:lang`, `xml:base` and
`xml:space` mean what they mean in the file, and a path from the root element on
(`/o:orders[@day=1]/o:order/o:item`) finds in the message of a record what it finds of that record
in the file. What it cannot see is what lies beside the record: siblings, their number, the text
between them. Where the file has a document type declaration, it stands before each message, and
entities and defaults mean the same as well.

Read in this order: `paths` (which elements are records), `blocks` (files, packed ones, streams),
`cutting` (a range of a file to rows), `splitting` (a whole file, ranges side by side).

Example:
    >>> import io
    >>> file = io.BytesIO(b"<list><r>1</r> <!-- <r/> --> <r>2</r></list>")
    >>> for batch in split_records(file, record="/list/r"):
    ...     print(batch.column("offset").to_pylist(), batch.column("message")[1])
    [6, 29] b'<list><r>2</r></list>'

It matches nothing, and checks nothing inside a record: that is the door's part. The kernel does the
work; there is no reference engine of it.
"""

from pathcast.records.cutting import CONTEXT_BYTES_MAX, RECORDS, Splitter
from pathcast.records.paths import record_path
from pathcast.records.splitting import split_records

__all__ = ["CONTEXT_BYTES_MAX", "RECORDS", "Splitter", "record_path", "split_records"]
