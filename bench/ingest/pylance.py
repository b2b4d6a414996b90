"""Writes the fragments of a dataset anew, each as a dataset of one file, and prints {"rows", "seconds", "cpu"} a line. Called by bench/ingest."""

import json
import sys
import time

import lance

path, out, rows_max, version = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rows = 0
for f in lance.dataset(path).get_fragments():
    if rows >= rows_max:
        break
    table = f.to_table()
    start, cpu = time.monotonic(), time.process_time()
    lance.write_dataset(table, f"{out}/{f.fragment_id}.lance", data_storage_version=version)
    print(json.dumps({"rows": table.num_rows, "seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}), flush=True)
    rows += table.num_rows
