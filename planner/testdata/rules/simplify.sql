# Constants fold, TRUE disappears.
rule
SELECT id FROM a WHERE x > 2 * 5 AND 1 = 1
----
Project: columns=[id]
└─ Filter: where=(x > (2 * 5)) AND (1 = 1)
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Filter: where=(x > 10)
   └─ Scan: table=mem.a, columns=[id, x, s]

# Nothing is left of a condition that is always TRUE.
rule
SELECT id FROM a WHERE 2 > 1
----
Project: columns=[id]
└─ Filter: where=(2 > 1)
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Scan: table=mem.a, columns=[id, x, s]

# FALSE empties the input.
rule
SELECT id FROM a WHERE x > 1 AND 1 = 2
----
Project: columns=[id]
└─ Filter: where=(x > 1) AND (1 = 2)
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Values: rows=0

# So does NULL.
rule
SELECT id FROM a WHERE x > NULL
----
Project: columns=[id]
└─ Filter: where=(x > NULL)
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Values: rows=0

# A join below goes with it.
rule
SELECT a.id FROM a JOIN b ON a.id = b.id WHERE 1 = 0
----
Project: columns=[id]
└─ Filter: where=(1 = 0)
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.b, columns=[id, y]
=>
Project: columns=[id]
└─ Values: rows=0

# An aggregate without keys still has its row.
rule
SELECT count(*) FROM a WHERE FALSE
----
Project: columns=[COUNT(1) AS count(*)]
└─ Aggregate: keys=[], aggregates=[count(*)]
   └─ Filter: where=false
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[COUNT(1) AS count(*)]
└─ Aggregate: keys=[], aggregates=[count(*)]
   └─ Values: rows=0


rows
SELECT count(*), sum(x) FROM a WHERE FALSE
----
0 NULL

# LIMIT 0 reads nothing.
rule
SELECT id FROM a LIMIT 0
----
Limit: k=0
└─ Project: columns=[id]
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Values: rows=0

# A condition that may be TRUE stays.
rule
SELECT id FROM a WHERE x > 1 OR 1 = 2
----
Project: columns=[id]
└─ Filter: where=((x > 1) OR (1 = 2))
   └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Filter: where=(x > 1)
   └─ Scan: table=mem.a, columns=[id, x, s]

# RAND is no constant.
rule
SELECT id FROM a WHERE rand() < 2
----
Project: columns=[id]
└─ Filter: where=(rand() < 2)
   └─ Scan: table=mem.a, columns=[id, x, s]
=> the same
