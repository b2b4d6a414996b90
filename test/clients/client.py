"""Runs the statements on standard input through PyMySQL or SQLAlchemy. See doc.go for the lines."""

import base64
import datetime
import decimal
import json
import sys


def argument(text):
    kind, value = text[0], base64.b64decode(text[2:])
    if kind == "b":
        return value
    value = value.decode()
    return {
        "n": lambda v: None,
        "i": int,
        "u": int,
        "f": float,
        "d": decimal.Decimal,
        "t": datetime.datetime.fromisoformat,
        "s": str,
    }[kind](value)


def cell(v):
    if v is None:
        return None
    if isinstance(v, bytes):
        return v.hex()
    if isinstance(v, bool):
        return str(int(v))
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        return v.isoformat(sep=" ")
    if isinstance(v, datetime.timedelta):
        micros = round(v / datetime.timedelta(microseconds=1))
        sign, micros = ("-", -micros) if micros < 0 else ("", micros)
        seconds, micros = divmod(micros, 1_000_000)
        return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return str(v)


class PyMySQL:
    def __init__(self, port, database):
        import pymysql

        self.error = pymysql.MySQLError
        self.connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database=database)

    def run(self, sql, args):
        with self.connection.cursor() as cursor:
            if args:
                cursor.execute(sql.replace("%", "%%").replace("?", "%s"), args)
            else:
                cursor.execute(sql)
            return [d[0] for d in cursor.description or []], cursor.fetchall()

    def code(self, e):
        return e.args[0], str(e.args[-1])


class SQLAlchemy:
    def __init__(self, port, database):
        import sqlalchemy

        self.sa = sqlalchemy
        self.error = sqlalchemy.exc.DBAPIError
        self.connection = sqlalchemy.create_engine(f"mysql+pymysql://root@127.0.0.1:{port}/{database}").connect()

    def run(self, sql, args):
        for i in range(len(args)):
            sql = sql.replace("?", f":p{i}", 1)
        result = self.connection.execute(self.sa.text(sql), {f"p{i}": a for i, a in enumerate(args)})
        if not result.returns_rows:
            return [], []
        return list(result.keys()), result.fetchall()

    def code(self, e):
        self.connection.rollback()
        return e.orig.args[0], str(e.orig.args[-1])


def reflect(port, database):
    """Prints what SQLAlchemy's inspector sees, and the answer of a statement built on reflected tables."""
    import sqlalchemy as sa

    engine = sa.create_engine(f"mysql+pymysql://root@127.0.0.1:{port}/{database}")
    inspector = sa.inspect(engine)
    out = {"schemas": inspector.get_schema_names(), "tables": inspector.get_table_names(), "views": inspector.get_view_names(), "columns": {}}
    for table in out["tables"]:
        out["columns"][table] = [[c["name"], str(c["type"]), c["nullable"]] for c in inspector.get_columns(table)]
        inspector.get_pk_constraint(table), inspector.get_foreign_keys(table), inspector.get_unique_constraints(table)
        inspector.get_table_comment(table), inspector.get_check_constraints(table)
    out["indexes"] = sorted(i["name"] for i in inspector.get_indexes("images"))
    out["other"] = [[c["name"], str(c["type"]), c["nullable"]] for c in inspector.get_columns("scalars_v22_7", schema="fixtures")]

    metadata = sa.MetaData()
    images, orders = (sa.Table(name, metadata, autoload_with=engine) for name in ("images", "orders"))
    count, total = sa.func.count().label("n"), sa.func.sum(orders.c.amount).label("total")
    statement = (
        sa.select(orders.c.carrier, count, total)
        .join(images, images.c.parcel_id == orders.c.parcel_id)
        .where(sa.func.array_has(images.c.labels, "damage"), images.c.captured_at >= datetime.datetime(2026, 10, 1), orders.c.amount > decimal.Decimal("1.50"))
        .group_by(orders.c.carrier)
        .order_by(sa.desc("n"), orders.c.carrier)
        .limit(5)
    )
    with engine.connect() as connection:
        out["core"] = [[cell(v) for v in row] for row in connection.execute(statement)]
        out["labels"] = connection.execute(sa.select(images.c.labels).where(images.c.labels.is_not(None)).order_by(images.c.id).limit(1)).scalar_one()
    print(json.dumps(out))


def main():
    kind, port, database = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if kind == "reflect":
        return reflect(port, database)
    client = {"pymysql": PyMySQL, "sqlalchemy": SQLAlchemy}[kind](port, database)
    for line in sys.stdin.read().split("\n"):
        if not line:
            continue
        name, mode, statement, *args = line.split("\t")
        out = {"name": name, "mode": mode}
        try:
            out["columns"], rows = client.run(base64.b64decode(statement).decode(), [argument(a) for a in args])
            out["rows"] = [[cell(v) for v in row] for row in rows]
        except client.error as e:
            out["code"], out["message"] = client.code(e)
        print(json.dumps(out))


main()
