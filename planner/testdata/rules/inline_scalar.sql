# A subquery that reads nothing of the row outside is a constant.
rule
SELECT id, (SELECT max(y) FROM b) FROM a WHERE x > (SELECT min(y) FROM b)
----
Project: columns=[id, max(y) AS (SELECT max(y) FROM b)]
└─ Join: kind=single
   ├─ Filter: where=(x > min(y))
   │  └─ Join: kind=single
   │     ├─ Scan: table=mem.a, columns=[id, x, s]
   │     └─ Project: columns=[MIN(b.y) AS min(y)]
   │        └─ Aggregate: keys=[], aggregates=[min(y)]
   │           └─ Scan: table=mem.b, columns=[id, y]
   └─ Project: columns=[MAX(b.y) AS max(y)]
      └─ Aggregate: keys=[], aggregates=[max(y)]
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id, 9 AS (SELECT max(y) FROM b)]
└─ Project: columns=[id, x, s, 7 AS min(y), 9 AS max(y)]
   └─ Filter: where=(x > 7)
      └─ Project: columns=[id, x, s, 7 AS min(y)]
         └─ Scan: table=mem.a, columns=[id, x, s]

# Of no row it is NULL.
rule
SELECT id FROM a WHERE x > (SELECT y FROM b WHERE y > 100)
----
Project: columns=[id]
└─ Filter: where=(x > y)
   └─ Join: kind=single
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[y]
         └─ Filter: where=(y > 100)
            └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Filter: where=(x > NULL)
   └─ Project: columns=[id, x, s, NULL AS y]
      └─ Scan: table=mem.a, columns=[id, x, s]

# One that reads the row outside stays a join.
rule
SELECT id FROM a WHERE x > (SELECT max(y) FROM b WHERE b.id = a.id)
----
Project: columns=[id]
└─ Filter: where=(x > MAX(b.y))
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Aggregate: keys=[id], aggregates=[max(y)]
         └─ Scan: table=mem.b, columns=[id, y]
=> the same

# A query vector from a table makes a search.
explain
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, (SELECT v FROM lake.vec_ivf_flat_l2 WHERE id = 5)) LIMIT 3
----
Limit: k=3
└─ Project: columns=[id]
   └─ LateFetch: table=lake.vec_ivf_flat_l2, columns=[id], why=late reads about 9 bytes, early 27
      └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=exact, why=167232 bytes of vectors are below ann_exact_bytes

rows ordered
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, (SELECT v FROM lake.vec_ivf_flat_l2 WHERE id = 5)) LIMIT 1
----
5
