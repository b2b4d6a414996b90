# A filter goes into the scan.
rule
SELECT id FROM a WHERE x > 5 AND s = 'p'
----
Project: columns=[id]
└─ Filter: where=(x > 5) AND (s = 'p')
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 5) AND (s = 'p')

# Through a projection, by its definition.
rule
SELECT y FROM (SELECT x + 1 AS y FROM a) t WHERE y > 5
----
Project: columns=[y]
└─ Filter: where=(y > 5)
   └─ Project: columns=[(x + 1) AS y]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[y]
└─ Project: columns=[(x + 1) AS y]
   └─ Scan: table=mem.a, columns=[id, x, s], filter=((x + 1) > 5)

# An inner join gives each side what it can check; the rest becomes ON.
rule
SELECT a.id FROM a JOIN b ON a.id = b.id WHERE a.x > 5 AND b.y < 9 AND a.x > b.y
----
Project: columns=[id]
└─ Filter: where=(x > 5) AND (y < 9) AND (x > y)
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(x > y) AND (id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 5)
   └─ Scan: table=mem.b, columns=[id, y], filter=(y < 9)

# A left join gives the left side its part and keeps what is about padded rows.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE a.x > 5 AND b.y IS NULL
----
Project: columns=[id]
└─ Filter: where=(x > 5) AND is_null(y)
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Filter: where=is_null(y)
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 5)
      └─ Scan: table=mem.b, columns=[id, y]


rows
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE a.x > 5 AND b.y IS NULL
----
2
4

# A condition that no padded row passes makes it an inner join.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.y > 5
----
Project: columns=[id]
└─ Filter: where=(y > 5)
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y], filter=(y > 5)

# So does IS NOT NULL.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.y IS NOT NULL
----
Project: columns=[id]
└─ Filter: where=is_not_null(y)
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y], filter=is_not_null(y)

# IN does by its subject.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.y IN (7, 8)
----
Project: columns=[id]
└─ Filter: where=(y IN [7 8])
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y], filter=(y IN [7 8])

# A list of IN with the column in it does not.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE 1 IN (b.y, 1)
----
Project: columns=[id]
└─ Join: kind=left, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y]
=> the same


rows
SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id WHERE 1 IN (b.y, 1)
----
1 7
1 8
2 NULL
3 NULL
4 NULL

# COALESCE and <=> do not.
rule
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE coalesce(b.y, 7) = 7 AND NOT (b.y <=> 8)
----
Project: columns=[id]
└─ Filter: where=(coalesce(y, 7) = 7) AND not((y <=> 8))
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=> the same


rows
SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE coalesce(b.y, 7) = 7 AND NOT (b.y <=> 8)
----
1
2
3
4

# ON of a left join filters the right side, never the left one.
rule
SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id AND b.y > 7 AND a.x > 10
----
Project: columns=[id, y]
└─ Join: kind=left, on=(id = id) AND (y > 7) AND (x > 10)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id, y]
└─ Join: kind=left, on=(id = id) AND (x > 10)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y], filter=(y > 7)


rows
SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id AND b.y > 7 AND a.x > 10
----
1 NULL
2 NULL
3 NULL
4 NULL

# A full join keeps both sides whole.
rule
SELECT a.id, b.y FROM a FULL OUTER JOIN b ON a.id = b.id AND a.x > 10 AND b.y > 7 WHERE a.id > 1
----
Project: columns=[id, y]
└─ Filter: where=(id > 1)
   └─ Join: kind=full, on=(id = id) AND (x > 10) AND (y > 7)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=> the same

# A semi join: both sides.
rule
SELECT id FROM a WHERE x > 5 AND EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.y > 7 AND a.s = 'p')
----
Project: columns=[id]
└─ Filter: where=(x > 5)
   └─ Join: kind=semi, on=(id = id) AND (s = 'p')
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[1 AS 1, id]
         └─ Filter: where=(y > 7)
            └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=semi, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 5) AND (s = 'p')
   └─ Project: columns=[1 AS 1, id]
      └─ Scan: table=mem.b, columns=[id, y], filter=(y > 7)


rows
SELECT id FROM a WHERE x > 5 AND EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.y > 7 AND a.s = 'p')
----
1

# An anti join: what is about the left side in ON decides about matches, not about rows.
rule
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.y > 7 AND a.x > 15)
----
Project: columns=[id]
└─ Join: kind=anti, on=(id = id) AND (x > 15)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Project: columns=[1 AS 1, id]
      └─ Filter: where=(y > 7)
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=anti, on=(id = id) AND (x > 15)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Project: columns=[1 AS 1, id]
      └─ Scan: table=mem.b, columns=[id, y], filter=(y > 7)


rows
SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.y > 7 AND a.x > 15)
----
1
2
3
4

# NOT IN still sees the NULL of the right side.
rule
SELECT id FROM a WHERE id NOT IN (SELECT id FROM b) AND x > 1
----
Project: columns=[id]
└─ Filter: where=(x > 1)
   └─ Join: kind=null_aware_anti, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[id]
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=null_aware_anti, on=(id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 1)
   └─ Project: columns=[id]
      └─ Scan: table=mem.b, columns=[id, y]


rows
SELECT id FROM a WHERE id NOT IN (SELECT id FROM b) AND x > 1
----


rows
SELECT id FROM a WHERE id NOT IN (SELECT id FROM b WHERE id > 0) AND id > 1
----
3
4

# IN under OR is a mark; what reads it stays above.
rule
SELECT id FROM a WHERE (id IN (SELECT id FROM b) OR x = 20) AND id < 9
----
Project: columns=[id]
└─ Filter: where=(mark OR (x = 20)) AND (id < 9)
   └─ Join: kind=mark, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[id]
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Filter: where=(mark OR (x = 20))
   └─ Join: kind=mark, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s], filter=(id < 9)
      └─ Project: columns=[id]
         └─ Scan: table=mem.b, columns=[id, y]


rows
SELECT id FROM a WHERE (id IN (SELECT id FROM b) OR x = 20) AND id < 9
----
1
2
4

# A condition on the keys goes below GROUP BY, one on an aggregate stays.
rule
SELECT s, count(*) AS n FROM a GROUP BY s HAVING s > 'o' AND n > 1
----
Project: columns=[s, count(1) AS n]
└─ Filter: where=(s > 'o') AND (n > 1)
   └─ Project: columns=[COUNT(1) AS count(1), s]
      └─ Aggregate: keys=[s], aggregates=[count(*)]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[s, count(1) AS n]
└─ Project: columns=[COUNT(1) AS count(1), s]
   └─ Filter: where=(COUNT(1) > 1)
      └─ Aggregate: keys=[s], aggregates=[count(*)]
         └─ Scan: table=mem.a, columns=[id, x, s], filter=(s > 'o')

# Without keys nothing goes below: the one row exists whatever the input.
rule
SELECT n FROM (SELECT count(*) AS n FROM a) t WHERE 0 < 1 AND n > 100
----
Project: columns=[n]
└─ Filter: where=(n > 100)
   └─ Project: columns=[COUNT(1) AS n]
      └─ Aggregate: keys=[], aggregates=[count(*)]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[n]
└─ Project: columns=[COUNT(1) AS n]
   └─ Filter: where=(COUNT(1) > 100)
      └─ Aggregate: keys=[], aggregates=[count(*)]
         └─ Scan: table=mem.a, columns=[id, x, s]


rows
SELECT n FROM (SELECT count(*) AS n, sum(x) AS m FROM a WHERE id > 100) t WHERE n = 0 AND m IS NULL
----
0

# Through DISTINCT.
rule
SELECT s FROM (SELECT DISTINCT s, x FROM a) t WHERE x = 20
----
Project: columns=[s]
└─ Filter: where=(x = 20)
   └─ Distinct
      └─ Project: columns=[s, x]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[s]
└─ Distinct
   └─ Project: columns=[s, x]
      └─ Scan: table=mem.a, columns=[id, x, s], filter=(x = 20)

# Into every input of a UNION.
rule
SELECT v FROM (SELECT id AS v FROM a UNION ALL SELECT y + 1 FROM b) t WHERE v > 2
----
Project: columns=[v]
└─ Filter: where=(v > 2)
   └─ Union
      ├─ Project: columns=[id AS v]
      │  └─ Scan: table=mem.a, columns=[id, x, s]
      └─ Project: columns=[(y + 1) AS y + 1]
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[v]
└─ Union
   ├─ Project: columns=[id AS v]
   │  └─ Scan: table=mem.a, columns=[id, x, s], filter=(id > 2)
   └─ Project: columns=[(y + 1) AS y + 1]
      └─ Scan: table=mem.b, columns=[id, y], filter=((y + 1) > 2)


rows
SELECT v FROM (SELECT id AS v FROM a UNION SELECT y + 1 FROM b) t WHERE v > 2
----
10
3
4
8
9

# Never below a LIMIT.
rule
SELECT id FROM (SELECT id, x FROM a ORDER BY id LIMIT 2) t WHERE x > 10
----
Project: columns=[id]
└─ Filter: where=(x > 10)
   └─ Limit: k=2
      └─ Project: columns=[id, x]
         └─ Sort: keys=[id]
            └─ Scan: table=mem.a, columns=[id, x, s]
=> the same


rows
SELECT id FROM (SELECT id, x FROM a ORDER BY id LIMIT 2) t WHERE x > 10
----
2

# A random value is compared where it is shown.
rule
SELECT r FROM (SELECT rand() AS r FROM a) t WHERE r > 0.5
----
Project: columns=[r]
└─ Filter: where=(r > 0.5)
   └─ Project: columns=[rand() AS r]
      └─ Scan: table=mem.a, columns=[id, x, s]
=> the same

# A random condition stays above a join.
rule
SELECT a.id FROM a JOIN b ON a.id = b.id WHERE rand() < 0.5 AND a.x > 1
----
Project: columns=[id]
└─ Filter: where=(rand() < 0.5) AND (x > 1)
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Filter: where=(rand() < 0.5)
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s], filter=(x > 1)
      └─ Scan: table=mem.b, columns=[id, y]

# An equality that every branch of an OR has is a join key.
rule
SELECT a.id FROM a, b WHERE (a.id = b.id AND a.x = 10) OR (a.id = b.id AND b.y = 7)
----
Project: columns=[id]
└─ Filter: where=(((id = id) AND (x = 10)) OR ((id = id) AND (y = 7)))
   └─ Join: kind=inner
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(((id = id) AND (x = 10)) OR ((id = id) AND (y = 7))) AND (id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.b, columns=[id, y]

# A scalar subquery gives a row its only match; the condition on it stays above.
rule
SELECT id FROM a WHERE x > (SELECT max(y) FROM b WHERE b.id = a.id) AND id > 1
----
Project: columns=[id]
└─ Filter: where=(x > MAX(b.y)) AND (id > 1)
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Aggregate: keys=[id], aggregates=[max(y)]
         └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(x > MAX(b.y)) AND (id = id)
   ├─ Scan: table=mem.a, columns=[id, x, s], filter=(id > 1)
   └─ Aggregate: keys=[id], aggregates=[max(y)]
      └─ Scan: table=mem.b, columns=[id, y]
