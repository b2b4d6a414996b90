# LIMIT over ORDER BY.
rule
SELECT id, x FROM a ORDER BY x DESC, id LIMIT 2 OFFSET 1
----
Limit: k=2, offset=1
└─ Project: columns=[id, x]
   └─ Sort: keys=[x DESC, id]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id, x]
└─ TopN: keys=[x DESC, id], k=2, offset=1
   └─ Scan: table=mem.a, columns=[id, x, s]

# Below a projection that hides the key.
rule
SELECT s FROM a ORDER BY x LIMIT 2
----
Limit: k=2
└─ Project: columns=[s]
   └─ Sort: keys=[x]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[s]
└─ TopN: keys=[x], k=2
   └─ Scan: table=mem.a, columns=[id, x, s]

# A plain LIMIT goes below the projection.
rule
SELECT x + 1 FROM a LIMIT 2
----
Limit: k=2
└─ Project: columns=[(x + 1) AS x + 1]
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[(x + 1) AS x + 1]
└─ Limit: k=2
   └─ Scan: table=mem.a, columns=[id, x, s]

# LIMIT of a LIMIT: the outer window of the inner one.
rule
SELECT id FROM (SELECT id FROM a ORDER BY id LIMIT 3 OFFSET 1) t LIMIT 10 OFFSET 1
----
Limit: k=10, offset=1
└─ Limit: k=3, offset=1
   └─ Project: columns=[id]
      └─ Sort: keys=[id]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ TopN: keys=[id], k=2, offset=2
   └─ Scan: table=mem.a, columns=[id, x, s]


rows ordered
SELECT id FROM (SELECT id FROM a ORDER BY id LIMIT 3 OFFSET 1) t LIMIT 10 OFFSET 1
----
3
4

# Beyond the inner one there is nothing.
rule
SELECT id FROM (SELECT id FROM a ORDER BY id LIMIT 2) t LIMIT 5 OFFSET 2
----
Limit: k=5, offset=2
└─ Limit: k=2
   └─ Project: columns=[id]
      └─ Sort: keys=[id]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Values: rows=0


rows
SELECT id FROM (SELECT id FROM a ORDER BY id LIMIT 2) t LIMIT 5 OFFSET 2
----


rows ordered
SELECT id FROM (SELECT id FROM a ORDER BY id LIMIT 3) t LIMIT 5 OFFSET 2
----
3

# A sort between two limits by another key stays.
rule
SELECT id FROM (SELECT id, x FROM a ORDER BY id LIMIT 3) t ORDER BY x DESC LIMIT 1
----
Limit: k=1
└─ Project: columns=[id]
   └─ Sort: keys=[x DESC]
      └─ Limit: k=3
         └─ Project: columns=[id, x]
            └─ Sort: keys=[id]
               └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ TopN: keys=[x DESC], k=1
   └─ Project: columns=[id, x]
      └─ TopN: keys=[id], k=3
         └─ Scan: table=mem.a, columns=[id, x, s]


rows
SELECT id FROM (SELECT id, x FROM a ORDER BY id LIMIT 3) t ORDER BY x DESC LIMIT 1
----
2

# All the rest is a sort.
rule
SELECT id FROM a ORDER BY id LIMIT 18446744073709551615 OFFSET 2
----
Limit: offset=2
└─ Project: columns=[id]
   └─ Sort: keys=[id]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Limit: offset=2
   └─ Sort: keys=[id]
      └─ Scan: table=mem.a, columns=[id, x, s]


rows ordered
SELECT id FROM a ORDER BY id LIMIT 18446744073709551615 OFFSET 2
----
3
4

# A union is sorted as a whole.
rule
SELECT id FROM a UNION ALL SELECT y FROM b ORDER BY id DESC LIMIT 2
----
Limit: k=2
└─ Sort: keys=[id DESC]
   └─ Union
      ├─ Project: columns=[id]
      │  └─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[y]
         └─ Scan: table=mem.b, columns=[id, y]
=>
TopN: keys=[id DESC], k=2
└─ Union
   ├─ Project: columns=[id]
   │  └─ Scan: table=mem.a, columns=[id, x, s]
   └─ Project: columns=[y]
      └─ Scan: table=mem.b, columns=[id, y]


rows ordered
SELECT id FROM a UNION ALL SELECT y FROM b ORDER BY id DESC LIMIT 2
----
9
8

# LIMIT above GROUP BY without an order.
rule
SELECT s, count(*) FROM a GROUP BY s LIMIT 1
----
Limit: k=1
└─ Project: columns=[s, COUNT(1) AS count(*)]
   └─ Aggregate: keys=[s], aggregates=[count(*)]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[s, COUNT(1) AS count(*)]
└─ Limit: k=1
   └─ Aggregate: keys=[s], aggregates=[count(*)]
      └─ Scan: table=mem.a, columns=[id, x, s]
