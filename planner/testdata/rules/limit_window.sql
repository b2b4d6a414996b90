# The first rows of each group.
rule
SELECT id, s FROM (SELECT id, s, ROW_NUMBER() OVER (PARTITION BY s ORDER BY x DESC, id) AS rn FROM a) t WHERE rn <= 1
----
Project: columns=[id, s]
└─ Project: columns=[id, s, row_number AS rn]
   └─ Filter: where=(row_number <= 1)
      └─ Window: partition=[s], order=[x DESC, id], functions=[row_number()]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id, s]
└─ Project: columns=[id, s, row_number AS rn]
   └─ Filter: where=(row_number <= 1)
      └─ Window: partition=[s], order=[x DESC, id], functions=[row_number()], top=row_number <= 1
         └─ Scan: table=mem.a, columns=[id, x, s]

rows
SELECT id, s FROM (SELECT id, s, ROW_NUMBER() OVER (PARTITION BY s ORDER BY x DESC, id) AS rn FROM a) t WHERE rn <= 1
----
2 q
3 NULL
4 p

# Peers of one rank come together; the tightest bound counts.
rule
SELECT id FROM (SELECT id, RANK() OVER (ORDER BY x DESC) AS r FROM a) t WHERE 3 > r AND r = 1
----
Project: columns=[id]
└─ Project: columns=[id, rank AS r]
   └─ Filter: where=(3 > rank) AND (rank = 1)
      └─ Window: partition=[], order=[x DESC], functions=[rank()]
         └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Project: columns=[id, rank AS r]
   └─ Filter: where=(3 > rank) AND (rank = 1)
      └─ Window: partition=[], order=[x DESC], functions=[rank()], top=rank <= 1
         └─ Scan: table=mem.a, columns=[id, x, s]

rows
SELECT id FROM (SELECT id, RANK() OVER (ORDER BY x DESC) AS r FROM a) t WHERE 3 > r AND r = 1
----
2
4

# A sum sees rows behind the limit.
rule
SELECT id, total FROM (SELECT id, SUM(x) OVER () AS total, ROW_NUMBER() OVER () AS rn FROM a) t WHERE rn <= 1
----
Project: columns=[id, total]
└─ Project: columns=[id, sum AS total, row_number AS rn]
   └─ Filter: where=(row_number <= 1)
      └─ Window: partition=[], order=[], functions=[sum(x) range between unbounded preceding and unbounded following, row_number()]
         └─ Scan: table=mem.a, columns=[id, x, s]
=> the same

# So does a window above.
rule
SELECT id FROM (SELECT id, COUNT(*) OVER (PARTITION BY s) AS n, ROW_NUMBER() OVER (ORDER BY id) AS rn FROM a) t WHERE rn <= 2
----
Project: columns=[id]
└─ Project: columns=[id, count AS n, row_number AS rn]
   └─ Filter: where=(row_number <= 2)
      └─ Window: partition=[], order=[id], functions=[row_number()]
         └─ Window: partition=[s], order=[], functions=[count(*) range between unbounded preceding and unbounded following]
            └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ Project: columns=[id, count AS n, row_number AS rn]
   └─ Filter: where=(row_number <= 2)
      └─ Window: partition=[], order=[id], functions=[row_number()], top=row_number <= 2
         └─ Window: partition=[s], order=[], functions=[count(*) range between unbounded preceding and unbounded following]
            └─ Scan: table=mem.a, columns=[id, x, s]

# A condition over the partition's key goes below the window; another one does not.
rule
SELECT id FROM (SELECT id, s, x, DENSE_RANK() OVER (PARTITION BY s ORDER BY x DESC) AS rn FROM a) t WHERE rn < 2 AND s = 'p' AND x > 5
----
Project: columns=[id]
└─ Project: columns=[id, s, x, dense_rank AS rn]
   └─ Filter: where=(dense_rank < 2) AND (x > 5)
      └─ Window: partition=[s], order=[x DESC], functions=[dense_rank()]
         └─ Scan: table=mem.a, columns=[id, x, s], filter=(s = 'p')
=>
Project: columns=[id]
└─ Project: columns=[id, s, x, dense_rank AS rn]
   └─ Filter: where=(dense_rank < 2) AND (x > 5)
      └─ Window: partition=[s], order=[x DESC], functions=[dense_rank()], top=dense_rank <= 1
         └─ Scan: table=mem.a, columns=[id, x, s], filter=(s = 'p')

rows
SELECT id FROM (SELECT id, s, x, DENSE_RANK() OVER (PARTITION BY s ORDER BY x DESC) AS rn FROM a) t WHERE rn < 2 AND s = 'p' AND x > 5
----
4
