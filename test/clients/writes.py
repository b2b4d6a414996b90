"""Writes through PyMySQL and the ORM of SQLAlchemy, both with autocommit off, and prints what came of it. Argument: the port."""
import datetime
import sys

import pymysql
from sqlalchemy import JSON, BigInteger, Boolean, DateTime, Numeric, String, Text, create_engine, delete, select, text, update
from sqlalchemy.dialects.mysql import insert as upsert
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column

port = int(sys.argv[1])

c = pymysql.connect(host="127.0.0.1", port=port, user="root", database="lake")
cur = c.cursor()
cur.execute("CREATE TABLE py (id INT PRIMARY KEY, name VARCHAR(20), labels LIST<VARCHAR>)")
rows = [(i, "n%d" % i, '["a"]') for i in range(5)]
print("many", cur.executemany("INSERT INTO py VALUES (%s, %s, %s)", rows))
c.rollback()
cur.execute("SELECT count(*) FROM py")
print("after rollback", cur.fetchone())
cur.executemany("INSERT INTO py VALUES (%s, %s, %s)", rows)
c.commit()
print("update", [cur.execute("UPDATE py SET name=%s WHERE id<%s", ("x", 2)) for _ in range(2)])
print("delete", cur.execute("DELETE FROM py WHERE id=%s", (4,)))
c.commit()
cur.execute("SELECT * FROM py ORDER BY id")
print(cur.fetchall())
for values in ("NULL, 'x', NULL", "1, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', NULL"):
    try:
        cur.execute("INSERT INTO py VALUES (%s)" % values)
    except pymysql.MySQLError as e:
        print(type(e).__name__, *e.args)
c.close()


class Base(DeclarativeBase):
    pass


class Parcel(Base):
    __tablename__ = "orm_parcels"
    id = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name = mapped_column(String(30), nullable=False)
    price = mapped_column(Numeric(8, 2))
    at = mapped_column(DateTime)
    ok = mapped_column(Boolean, default=True)
    doc = mapped_column(JSON)
    note = mapped_column(Text)


def parcels():
    at = datetime.datetime(2026, 11, 30, 1, 2, 3)
    return [Parcel(id=i, name="p%d" % i, price=i * 1.5, at=at, doc={"k": [i]}, note="n") for i in range(4)]


def count(s):
    return s.scalar(text("SELECT count(*) FROM orm_parcels"))


e = create_engine("mysql+pymysql://root@127.0.0.1:%d/lake" % port)
Base.metadata.create_all(e)
Base.metadata.create_all(e)  # finds the table
with Session(e) as s:
    s.add_all(parcels())
    s.flush()
    print("flushed", count(s))
    s.rollback()
    print("rolled back", count(s))
with Session(e) as s:
    s.add_all(parcels())
    s.commit()
with Session(e) as s:
    p = s.get(Parcel, 2)
    print(p.name, p.price, p.at, p.ok, p.doc)
    p.name = "changed"
    s.delete(s.get(Parcel, 3))
    s.commit()
with Session(e) as s:
    print("update", s.execute(update(Parcel).where(Parcel.id < 2).values(price=Parcel.price + 1)).rowcount)
    insert = upsert(Parcel).values(id=1, name="up")
    s.execute(insert.on_duplicate_key_update(name=insert.inserted.name))
    s.commit()
    print([(p.id, p.name, str(p.price)) for p in s.scalars(select(Parcel).order_by(Parcel.id))])
    print("delete", s.execute(delete(Parcel).where(Parcel.id.in_([0, 1]))).rowcount)
    s.commit()
a, b = Session(e), Session(e)
a.get(Parcel, 2).name = "A"
b.get(Parcel, 2).name = "B"
a.flush()
b.flush()
a.commit()
try:
    b.commit()
    print("no conflict")
except Exception as x:
    print(type(x).__name__, x.orig.args[0])
    b.rollback()
print(b.get(Parcel, 2).name)
b.get(Parcel, 2).name = "C"
b.commit()
print(b.get(Parcel, 2).name)
a.close()
b.close()
