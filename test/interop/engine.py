"""Drives the reference engine for the interop tests: one JSON request a line on stdin, one JSON answer a line on stdout.

Rows travel as Arrow IPC stream files whose paths are in the request. Every answer has "ok" or "error".
"""

import datetime
import json
import sys
import traceback
import uuid

try:
    import lance
    from lance.query import MatchQuery
    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq
except ImportError as e:
    print(json.dumps({"error": f"{e}; run test/interop/setup"}), flush=True)
    sys.exit(3)


def read_rows(path):
    # The engine does not take decimals that lie on 8 bytes, which is all that a stream promises.
    return ipc.open_stream(path, options=ipc.IpcReadOptions(ensure_alignment=ipc.Alignment.At64Byte)).read_all()


def write_rows(table, path):
    with ipc.new_stream(path, table.schema) as w:
        w.write_table(table)
    return {"rows": table.num_rows}


def open_dataset(r):
    return lance.dataset(r["path"], version=r.get("version"))


def scanner(r):
    nearest = r.get("nearest")
    if nearest:
        nearest = dict(nearest)
        nearest["q"] = pa.array(nearest["q"], pa.float32())
    return open_dataset(r).scanner(
        columns=r.get("columns"), filter=r.get("filter"), limit=r.get("limit"), offset=r.get("offset"),
        nearest=nearest, prefilter=True if nearest else None, with_row_id=r.get("with_row_id"),
        with_row_address=r.get("with_row_address"), use_scalar_index=r.get("use_scalar_index"), scan_in_order=True)


def do_info(r):
    ds = open_dataset(r)
    return {
        "version": ds.version, "rows": ds.count_rows(), "data_storage_version": ds.data_storage_version,
        "fragments": [{"id": f.fragment_id, "rows": f.physical_rows, "deleted": f.num_deletions} for f in ds.get_fragments()],
        "indices": [{"name": i.name, "type": i.index_type, "segments": len(i.segments)} for i in ds.describe_indices()],
        "stable_row_ids": ds.has_stable_row_ids,
    }


def do_scan(r):
    return write_rows(scanner(r).to_table(), r["out"])


def do_explain(r):
    return {"plan": scanner(r).explain_plan(verbose=True)}


def do_take(r):
    return write_rows(open_dataset(r).take(r["rows"], columns=r.get("columns")), r["out"])


def do_file(r):
    from lance.file import LanceFileReader
    f = LanceFileReader(r["path"])
    if "rows" in r:
        return write_rows(f.take_rows(r["rows"]).to_table(), r["out"])
    if "start" in r:
        return write_rows(f.read_range(r["start"], r["count"]).to_table(), r["out"])
    return write_rows(f.read_all().to_table(), r["out"])


def do_create(r):
    ds = lance.write_dataset(read_rows(r["in"]), r["path"], mode=r.get("mode", "create"), max_rows_per_file=r.get("max_rows_per_file", 1 << 20),
                             data_storage_version=r.get("data_storage_version"), enable_stable_row_ids=r.get("stable_row_ids", False),
                             enable_v2_manifest_paths=not r.get("names_v1", False))
    return {"version": ds.version}


def rows_for(ds, r):
    """The rows of a request; with "cast" in the dataset's types."""
    rows = read_rows(r["in"])
    if r.get("cast"):
        rows = pa.table({f.name: rows.column(f.name) if rows.column(f.name).type == f.type else rows.column(f.name).cast(f.type) for f in ds.schema})
    return rows


def do_append(r):
    ds = open_dataset(r)
    return {"version": lance.write_dataset(rows_for(ds, r), ds, mode="append").version}


def do_delete(r):
    ds = open_dataset(r)
    ds.delete(r["filter"])
    return {"version": ds.version}


def do_update(r):
    ds = open_dataset(r)
    ds.update(r["values"], where=r.get("filter"))
    return {"version": ds.version}


def do_add_columns(r):
    ds = open_dataset(r)
    ds.add_columns(r["values"])
    return {"version": ds.version}


def do_drop_columns(r):
    ds = open_dataset(r)
    ds.drop_columns(r["columns"])
    return {"version": ds.version}


def do_rename(r):
    ds = open_dataset(r)
    ds.alter_columns({"path": r["column"], "name": r["to"]})
    return {"version": ds.version}


def do_config(r):
    ds = open_dataset(r)
    ds.update_config(r["values"])
    return {"version": ds.version}


def do_compact(r):
    ds = open_dataset(r)
    m = ds.optimize.compact_files(target_rows_per_fragment=r.get("target_rows", 1 << 20), defer_index_remap=r.get("defer", False))
    return {"version": ds.version, "removed": m.fragments_removed, "added": m.fragments_added}


def do_optimize_indices(r):
    ds = open_dataset(r)
    ds.optimize.optimize_indices(**r.get("options", {}))
    return {"version": ds.version}


def do_create_index(r):
    ds = open_dataset(r)
    if r.get("vector"):
        ds = ds.create_index(r["column"], r["kind"], name=r.get("name"), **r.get("options", {}))
    else:
        ds.create_scalar_index(r["column"], r["kind"], name=r.get("name"), **r.get("options", {}))
    return {"version": ds.version}


def do_drop_index(r):
    ds = open_dataset(r)
    ds.drop_index(r["name"])
    return {"version": ds.version}


def do_restore(r):
    lance.dataset(r["path"], version=r["version"]).restore()
    return {}


def ids_of(ds, **options):
    return ds.scanner(columns=["id"], **options).to_table().column("id").to_pylist()


def do_check(r):
    """All that a step of the matrix asks: the rows, answers by index and by scan with their plans, and what indices cover."""
    ds = open_dataset(r)
    if "out" in r:
        write_rows(ds.scanner(scan_in_order=True).to_table(), r["out"])
    answers = []
    for f in r.get("filters") or []:
        answers.append({"plan": ds.scanner(columns=["id"], filter=f).explain_plan(), "index": ids_of(ds, filter=f), "scan": ids_of(ds, filter=f, use_scalar_index=False)})
    for n in r.get("nearest", []):
        near = {"column": n["column"], "q": pa.array(n["q"], pa.float32()), "k": n["k"], "metric": n["metric"]}
        by_index = {**near, "nprobes": 64}
        options = {"filter": n.get("filter"), "prefilter": True}
        answers.append({"plan": ds.scanner(columns=["id"], nearest=by_index, **options).explain_plan(), "index": ids_of(ds, nearest=by_index, **options),
                        "scan": ids_of(ds, nearest={**near, "use_index": False}, **options)})
    texts = [ds.to_table(columns=["id"], full_text_query=MatchQuery(q, c)).column("id").to_pylist()
             for c, q in r.get("texts", [])]
    indices = {}
    for i in ds.describe_indices():
        s = ds.stats.index_stats(i.name)
        if "num_indexed_rows" not in s:  # kinds that the engine does not know have no statistics
            continue
        indices[i.name] = {"covered": s["num_indexed_rows"], "uncovered": s["num_unindexed_rows"], "segments": len(i.segments)}
    return {"version": ds.version, "answers": answers, "texts": texts, "indices": indices}


def do_copy(r):
    lance.write_dataset(open_dataset(r).to_table(), r["to"], data_storage_version=r["data_storage_version"])
    return {}


def do_append_own(r):
    """Appends what the table has, ids shifted."""
    ds = open_dataset(r)
    rows = ds.to_table()
    at = rows.schema.get_field_index("id")
    ids = pa.array([i.as_py() + r["shift"] for i in rows.column("id")], pa.int64())
    lance.write_dataset(rows.set_column(at, rows.schema.field("id"), ids), ds, mode="append")
    return {}


def do_upsert(r):
    ds = open_dataset(r)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows_for(ds, r))
    return {"version": lance.dataset(r["path"]).version}


def do_tags(r):
    return {name: {"version": tag["version"], "branch": tag.get("branch")} for name, tag in open_dataset(r).tags.list().items()}


def do_tag(r):
    open_dataset(r).tags.create(r["name"], r["version"])
    return {}


def do_branch(r):
    open_dataset(r).create_branch(r["name"], r["version"])
    return {}


def on_branch(r):
    return lance.dataset(r["path"]).checkout_version((r["branch"], None))


def do_branch_scan(r):
    return write_rows(on_branch(r).scanner(filter=r.get("filter"), columns=r.get("columns"), scan_in_order=True).to_table(), r["out"])


def do_branch_append(r):
    return {"version": lance.write_dataset(read_rows(r["in"]), on_branch(r), mode="append").version}


def do_branch_delete(r):
    ds = on_branch(r)
    ds.delete(r["filter"])
    return {"version": ds.version}


def do_cleanup(r):
    stats = open_dataset(r).cleanup_old_versions(older_than=datetime.timedelta(seconds=0), error_if_tagged_old_versions=False)
    return {"versions": stats.old_versions}


# A dataset object held across requests, to commit from an old version.
held = {}


def do_hold(r):
    key = str(uuid.uuid4())
    held[key] = open_dataset(r)
    return {"key": key, "version": held[key].version}


def do_held_append(r):
    return {"version": lance.write_dataset(read_rows(r["in"]), held[r["key"]], mode="append").version}


def do_held_delete(r):
    held[r["key"]].delete(r["filter"])
    return {"version": held[r["key"]].version}


def load(path):
    if path.endswith(".lance"):
        return lance.dataset(path).to_table()
    if path.endswith(".parquet"):
        return pq.read_table(path)
    return ipc.open_file(path).read_all()


def do_write_file(r):
    table = read_rows(r["rows"])
    drop = [f.name for f in table.schema if pa.types.is_nested(f.type) and "dictionary" in str(f.type)] # Parquet's writer takes no lists of codes
    table = table.drop_columns(drop)
    if r["path"].endswith(".parquet"):
        pq.write_table(table, r["path"], row_group_size=r["batch"])
    else:
        with ipc.new_file(r["path"], table.schema) as w:
            w.write_table(table, max_chunksize=r["batch"])
    return {"columns": table.num_columns}


def values(column, like):
    """The values of a column under another column's type, where it is only a matter of how they are kept."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(like)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def do_same(r):
    """Compares two files or datasets and returns what differs."""
    a, b = load(r["a"]), load(r["b"])
    b.validate(full=True)
    if a.column_names != b.column_names:
        return [f"columns {a.column_names} and {b.column_names}"]
    out = []
    for name in a.column_names:
        x = a[name].cast(a[name].type.value_type) if pa.types.is_dictionary(a[name].type) else a[name]
        y = values(b[name], x.type)
        if not x.equals(y) and x.to_pylist() != y.to_pylist():
            at = next((i for i, (v, w) in enumerate(zip(x.to_pylist(), y.to_pylist())) if v != w), -1)
            out.append(f"{name} {a[name].type}, {b[name].type}, row {at}: {x[at]} and {y[at]}")
    return out


def main():
    handlers = {k[3:]: v for k, v in globals().items() if k.startswith("do_")}
    print(json.dumps({"ok": {"lance": lance.__version__, "pyarrow": pa.__version__}}), flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            answer = {"ok": handlers[r.pop("op")](r)}
        except BaseException as e:  # the engine's panics are no Exceptions
            answer = {"error": f"{type(e).__name__}: {e}, at {traceback.extract_tb(e.__traceback__)[-1]}"}
        print(json.dumps(answer), flush=True)


main()
