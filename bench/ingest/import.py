"""Imports one Parquet file by lakesql and by pylance, one after the other, each in a process of its own, and prints seconds, rows a second, CPU and peak memory.

    python bench/ingest/import.py bin/lakesql [FOLDER]

The interpreter needs pylance and numpy. The file has 400,000 rows: an id, a name, a list of labels, a price, a time, a vector of 128.
"""

import os
import subprocess
import sys
import time

ROWS, PART = 400_000, 50_000


def make(path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, labels, writer = np.random.default_rng(1), np.array([f"label{i}" for i in range(500)]), None
    for lo in range(0, ROWS, PART):
        ends = np.concatenate([[0], np.cumsum(rng.integers(0, 6, PART))]).astype(np.int32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(PART * 128, dtype=np.float32)), 128)
        part = pa.table({
            "id": np.arange(lo, lo + PART), "name": [f"name of {i} {i * 7919 % 1000003}" for i in range(PART)],
            "labels": pa.ListArray.from_arrays(pa.array(ends), pa.array(labels[rng.integers(0, 500, ends[-1])])), "price": rng.random(PART),
            "at": pa.array(np.arange(PART) + 10**15, pa.timestamp("us")), "emb": vectors.cast(pa.list_(pa.float32()))})
        writer = writer or pq.ParquetWriter(path, part.schema, compression="zstd")
        writer.write_table(part)
    writer.close()


def measure(name, command):
    start = time.time()
    pid = subprocess.Popen(command, stdout=subprocess.DEVNULL).pid
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{name} failed")
    seconds = time.time() - start
    print(f"{name}: {seconds:.2f} s, {ROWS / seconds:.0f} rows/s, {usage.ru_utime + usage.ru_stime:.2f} s of CPU, {usage.ru_maxrss // 1024} MiB")


def main():
    lakesql, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "."
    source = os.path.join(folder, "import.parquet")
    make(source)
    script = "import sys, lance, pyarrow.dataset as ds; lance.write_dataset(ds.dataset(sys.argv[1]), sys.argv[2])"
    measure("lakesql", [lakesql, "import", source, "--into", os.path.join(folder, "lakesql.lance"), "-q"])
    measure("pylance", [sys.executable, "-c", script, source, os.path.join(folder, "pylance.lance")])


main()
