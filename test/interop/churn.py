"""Makes datasets by random histories and writes what pylance reads from each: churn.py FOLDER SEED.

Every file version, with and without stable row ids; appends, deletes, updates, upserts, added, renamed, cast and dropped columns,
compaction. NAME.expected.json is spelled as testdata/README.md says.
"""
import base64
import decimal
import json
import random
import sys

import lance
import pyarrow as pa

folder, seed = sys.argv[1], int(sys.argv[2])
rnd = random.Random(seed)
PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])


def spell(value, t):
    """One value as expected.json has it."""
    if value is None:
        return None
    if pa.types.is_int64(t):
        return str(value)
    if pa.types.is_large_binary(t):
        return base64.b64encode(value).decode()
    if pa.types.is_decimal(t):
        return str(int(value.scaleb(t.scale)))
    if pa.types.is_map(t):
        return {k: spell(v, t.item_type) for k, v in value}
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return [spell(v, t.value_type) for v in value]
    if pa.types.is_struct(t):
        return {f.name: spell(value[f.name], f.type) for f in t}
    if pa.types.is_dictionary(t):
        return spell(value, t.value_type)
    return value


def maybe(make, nulls=0.2):
    return None if rnd.random() < nulls else make()


def word():
    return rnd.choice(["a", "bb", "ünï", "", "long " * rnd.randint(1, 9)])


def pair():
    return {"x": maybe(lambda: rnd.randint(0, 9)), "y": maybe(word)}


class History:
    def __init__(self, path, version, stable):
        self.path, self.version, self.next_id, self.extra = path, version, 0, 0
        self.set = lance.write_dataset(
            self.rows(rnd.randint(50, 300)), path, data_storage_version=version, enable_stable_row_ids=stable, max_rows_per_file=100)

    def rows(self, n):
        ids = range(self.next_id, self.next_id + n)
        self.next_id += n
        outer = 0 if self.version == "2.0" else 0.2  # 2.0 files cannot hold null structs
        columns = {
            "id": pa.array(ids, pa.int64()),
            "s": pa.array([maybe(word) for _ in ids], pa.string()),
            "ls": pa.array([maybe(word) for _ in ids], pa.large_string()),
            "lb": pa.array([maybe(lambda: rnd.randbytes(3)) for _ in ids], pa.large_binary()),
            "n": pa.array([maybe(lambda: rnd.randint(-5, 5)) for _ in ids], pa.int32()),
            "l": pa.array([maybe(lambda: [maybe(word) for _ in range(rnd.randint(0, 3))]) for _ in ids], pa.list_(pa.string())),
            "ll": pa.array([maybe(lambda: [rnd.randint(0, 9) for _ in range(rnd.randint(0, 3))]) for _ in ids], pa.large_list(pa.int64())),
            "v": pa.array([maybe(lambda: [rnd.random() for _ in range(4)], outer) for _ in ids], pa.list_(pa.float32(), 4)),
            "d": pa.array([maybe(lambda: decimal.Decimal(rnd.randint(-10**40, 10**40)).scaleb(-3)) for _ in ids], pa.decimal256(50, 3)),
            "dict": pa.array([maybe(word) for _ in ids], pa.string()).dictionary_encode(),
            "st": pa.array([maybe(pair, outer) for _ in ids], PAIR),
        }
        if self.version != "2.0":
            columns["lst"] = pa.array([maybe(lambda: [maybe(pair) for _ in range(rnd.randint(0, 3))]) for _ in ids], pa.list_(PAIR))
        if self.version == "2.2":
            columns["m"] = pa.array(
                [maybe(lambda: [(k, maybe(lambda: rnd.randint(0, 9))) for k in rnd.sample("abcd", rnd.randint(0, 3))]) for _ in ids],
                pa.map_(pa.string(), pa.int32()))
        return pa.table(columns)

    def fitting(self, table):
        """The table's columns that the dataset still has, in its types."""
        return pa.table({f.name: table.column(f.name).cast(f.type) for f in self.set.schema if f.name in table.column_names})

    def append(self):
        lance.write_dataset(self.fitting(self.rows(rnd.randint(1, 150))), self.path, mode="append")

    def delete(self):
        self.set.delete(f"id % {rnd.randint(2, 9)} = {rnd.randint(0, 3)}")

    def update(self):
        self.set.update({"n": str(rnd.randint(100, 200))}, where=f"id % {rnd.randint(2, 9)} = 1")

    def upsert(self):
        new = self.fitting(self.rows(20))
        if new.num_columns < len(self.set.schema):
            return
        old = self.set.to_table(columns=["id"]).slice(0, 5).column("id").to_pylist()
        ids = old + new.column("id").to_pylist()[len(old):]
        new = new.set_column(new.schema.get_field_index("id"), "id", pa.array(ids, pa.int64()))
        self.set.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)

    def add_column(self):
        self.extra += 1
        self.set.add_columns({f"e{self.extra}": rnd.choice(["id * 2", "cast(n as string)", "cast(id as double)"])})

    def rename(self):
        added = [f.name for f in self.set.schema if f.name.startswith("e")]
        if added:
            self.set.alter_columns({"path": added[0], "name": added[0] + "r"})

    def cast(self):
        self.set.alter_columns({"path": "n", "data_type": pa.int64()})

    def drop(self):
        self.set.drop_columns([rnd.choice([f.name for f in self.set.schema if f.name not in ("id", "n")])])

    def compact(self):
        self.set.optimize.compact_files(target_rows_per_fragment=rnd.choice([100, 1000]))

    def run(self):
        steps = [self.append, self.delete, self.update, self.upsert, self.add_column, self.rename, self.cast, self.drop, self.compact]
        for _ in range(rnd.randint(4, 10)):
            rnd.choice(steps)()
            self.set = lance.dataset(self.path)

    def dump(self, path):
        table = self.set.to_table()
        values = {f.name: table.column(f.name).to_pylist() for f in table.schema}
        rows = [{f.name: spell(values[f.name][i], f.type) for f in table.schema} for i in range(table.num_rows)]
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"rows": rows, "queries": [], "indices": [], "schema": []}, out)


for version in ("2.0", "2.1", "2.2"):
    for stable in (False, True):
        name = f"{folder}/v{version.replace('.', '')}{'_stable' if stable else ''}"
        history = History(name + ".lance", version, stable)
        history.run()
        history.dump(name + ".expected.json")
