# Columns that nobody reads go.
rule
SELECT id FROM (SELECT * FROM a) t WHERE s = 'p'
----
Project: columns=[id]
└─ Project: columns=[id, x, s]
   └─ Scan: table=mem.a, columns=[id, x, s], filter=(s = 'p')
=>
Scan: table=mem.a, columns=[id], filter=(s = 'p')

# One that only the filter reads is not handed on.
rule
SELECT count(*) FROM a WHERE x > 5
----
Project: columns=[COUNT(1) AS count(*)]
└─ Aggregate: keys=[], aggregates=[count(*)]
   └─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 5)
=>
Aggregate: keys=[], aggregates=[count(*)]
└─ Scan: table=mem.a, columns=[], filter=(x > 5)


rows
SELECT count(*) FROM a WHERE x > 5
----
3

# Aggregates that nobody reads go; without keys one stays for its row.
rule
SELECT 1 FROM (SELECT count(*) AS n, sum(x) AS m FROM a) t
----
Project: columns=[1 AS 1]
└─ Project: columns=[COUNT(1) AS n, SUM(a.x) AS m]
   └─ Aggregate: keys=[], aggregates=[count(*), sum(x)]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[1 AS 1]
└─ Aggregate: keys=[], aggregates=[count(*)]
   └─ Scan: table=mem.a, columns=[]


rows
SELECT 1 FROM (SELECT count(*) AS n, sum(x) AS m FROM a) t
----
1

# DISTINCT needs every column.
rule
SELECT s FROM (SELECT DISTINCT s, x FROM a) t
----
Project: columns=[s]
└─ Distinct
   └─ Project: columns=[s, x]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[s]
└─ Distinct
   └─ Project: columns=[s, x]
      └─ Scan: table=mem.a, columns=[x, s]


rows
SELECT s FROM (SELECT DISTINCT s, x FROM a) t
----
NULL
p
p
q

# UNION ALL hands on what is read, by position.
rule
SELECT v FROM (SELECT id, x AS v, s FROM a UNION ALL SELECT y, id, 'u' FROM b) t
----
Project: columns=[v]
└─ Union
   ├─ Project: columns=[id, x AS v, s]
   │  └─ Scan: table=mem.a, columns=[id, x, s]
   └─ Project: columns=[y, id, 'u' AS u]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Union
├─ Scan: table=mem.a, columns=[x]
└─ Scan: table=mem.b, columns=[id]


rows
SELECT v FROM (SELECT id, x AS v, s FROM a UNION ALL SELECT y, id, 'u' FROM b) t
----
1
1
10
2
20
20
NULL
NULL


rows
SELECT count(*) FROM (SELECT id, s FROM a UNION ALL SELECT y, 'u' FROM b) t
----
8

# A join keeps its keys.
rule
SELECT a.s FROM a JOIN b ON a.id = b.id
----
Project: columns=[s]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[s]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, s]
   └─ Scan: table=mem.b, columns=[id]

# A computed column that is used twice is computed once.
rule
SELECT y + 1, y + 2 FROM (SELECT x * 2 AS y FROM a) t
----
Project: columns=[(y + 1) AS y + 1, (y + 2) AS y + 2]
└─ Project: columns=[(x * 2) AS y]
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[(y + 1) AS y + 1, (y + 2) AS y + 2]
└─ Project: columns=[(x * 2) AS y]
   └─ Scan: table=mem.a, columns=[x]

# A late column that nobody reads is not fetched.
rule
SELECT id FROM (SELECT id, wide, ts FROM lake.vec_ivf_flat_l2 ORDER BY ts DESC LIMIT 5) t
----
Project: columns=[id]
└─ Project: columns=[id, wide, ts]
   └─ TopN: keys=[ts DESC], k=5
      └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ TopN: keys=[ts DESC], k=5
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, ts]
