"""One task of bench/ingest by pylance: waits for a line before each step, and prints {"Step", "Rows", "Seconds", "Durable", "User", "System"} after it."""

import json
import os
import sys
import time

import lance

task = json.loads(sys.argv[1])


def step(name, work, written=None):
    print("{}", flush=True)
    sys.stdin.readline()
    start, before = time.monotonic(), os.times()
    rows = work()
    seconds, after = time.monotonic() - start, os.times()
    if written:  # the engine leaves that to the system
        for folder, _, files in os.walk(written):
            for name_of in files:
                fd = os.open(os.path.join(folder, name_of), os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
    durable = time.monotonic() - start
    print(json.dumps({"Step": name, "Rows": rows, "Seconds": seconds, "Durable": durable, "User": after.user - before.user, "System": after.system - before.system}), flush=True)


def write():
    rows = 0
    for f in lance.dataset(task["Dataset"]).get_fragments():
        if rows >= task["RowsMax"]:
            break
        table, out = f.to_table(), f"{task['Out']}/{f.fragment_id}.lance"

        def work():
            lance.write_dataset(table, out, data_storage_version=task["Version"])
            return table.num_rows

        step("write", work, out)
        rows += table.num_rows


def copy():
    ds, out = lance.dataset(task["Dataset"]), f"{task['Out']}/copy.lance"

    def work():
        lance.write_dataset(ds.scanner().to_reader(), out, data_storage_version=task["Version"])
        return ds.count_rows()

    step("copy", work, out)


def index():
    path, column, kind = task["Dataset"], task["Column"], task["Kind"]
    name = "bench_" + column
    ds = lance.dataset(path)
    rows = ds.count_rows()

    def build():
        if kind.startswith("IVF"):
            ds.create_index(column, kind, name=name, metric="l2", num_partitions=task["Lists"])
        else:
            ds.create_scalar_index(column, kind, name=name)
        return rows

    def update(merge):
        lance.write_dataset(lance.dataset(path).to_table(limit=rows // 100), path, mode="append")
        now = lance.dataset(path)

        def work():
            now.optimize.optimize_indices(num_indices_to_merge=merge, index_names=[name])
            return rows // 100

        return work

    indices = f"{path}/_indices"
    step("build", build, indices)
    step("update, own segment", update(0), indices)
    step("update, merged", update(2), indices)


{"write": write, "copy": copy, "index": index}[task["Do"]]()
