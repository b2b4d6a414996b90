# Columns that neither keys nor filters need wait.
rule
SELECT id, wide, ts FROM lake.vec_ivf_flat_l2 WHERE tenant = 't1' ORDER BY ts DESC LIMIT 5
----
Project: columns=[id, wide, ts]
└─ TopN: keys=[ts DESC], k=5
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, ts, wide], filter=(tenant = 't1')
=>
Project: columns=[id, wide, ts]
└─ Project: columns=[id, ts, wide]
   └─ Fetch: table=lake.vec_ivf_flat_l2, columns=[id, wide]
      └─ TopN: keys=[ts DESC], k=5
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[ts], filter=(tenant = 't1'), row_addr=yes

# A column that is shown twice is read once.
rule
SELECT wide AS a, wide AS b, concat(wide, tenant) AS c FROM lake.vec_ivf_flat_l2 ORDER BY id LIMIT 5
----
Project: columns=[wide AS a, wide AS b, concat(wide, tenant) AS c]
└─ TopN: keys=[id], k=5
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, tenant, wide]
=>
Project: columns=[wide AS a, wide AS b, concat(wide, tenant) AS c]
└─ Project: columns=[id, tenant, wide]
   └─ Fetch: table=lake.vec_ivf_flat_l2, columns=[tenant, wide]
      └─ TopN: keys=[id], k=5
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id], row_addr=yes

# Where everything is a key nothing waits.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY id LIMIT 5
----
TopN: keys=[id], k=5
└─ Scan: table=lake.vec_ivf_flat_l2, columns=[id]
=> the same

# A key that is computed from a wide column is read early.
rule
SELECT wide, tenant FROM lake.vec_ivf_flat_l2 ORDER BY length(wide), id LIMIT 5
----
Project: columns=[wide, tenant]
└─ TopN: keys=[length(wide), id], k=5
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, tenant, wide]
=>
Project: columns=[wide, tenant]
└─ Project: columns=[id, tenant, wide]
   └─ Fetch: table=lake.vec_ivf_flat_l2, columns=[tenant]
      └─ TopN: keys=[length(wide), id], k=5
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, wide], row_addr=yes

# A random value that is sorted by is computed once.
rule
SELECT wide, rand() AS r FROM lake.vec_ivf_flat_l2 ORDER BY r LIMIT 5
----
Project: columns=[wide, rand() AS r]
└─ TopN: keys=[r], k=5
   └─ Project: columns=[wide, rand() AS r]
      └─ Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
=> the same

# Rows of a table in memory have no addresses.
rule
SELECT s FROM a ORDER BY id LIMIT 2
----
Project: columns=[s]
└─ TopN: keys=[id], k=2
   └─ Scan: table=mem.a, columns=[id, s]
=> the same

# A search says what it does.
explain
SELECT id, wide FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 5
----
Limit: k=5
└─ Project: columns=[id, wide]
   └─ LateFetch: table=lake.vec_ivf_flat_l2, columns=[id wide], why=late reads about 195 bytes, early 585
      └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=5, method=exact, why=167232 bytes of vectors are below ann_exact_bytes


set
glm = 'off'
----
ok


rule
SELECT id, wide FROM lake.vec_ivf_flat_l2 ORDER BY ts DESC LIMIT 5
----
Project: columns=[id, wide]
└─ TopN: keys=[ts DESC], k=5
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, ts, wide]
=> the same


explain
SELECT id, wide FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 5
----
Limit: k=5
└─ Project: columns=[id, wide]
   └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=5, method=exact, why=167232 bytes of vectors are below ann_exact_bytes, early=[id wide]


set
glm = 'on'
----
ok


rule
SELECT id, wide FROM lake.vec_ivf_flat_l2 ORDER BY ts DESC LIMIT 2600
----
Project: columns=[id, wide]
└─ TopN: keys=[ts DESC], k=2600
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, ts, wide]
=>
Project: columns=[id, wide]
└─ Project: columns=[id, ts, wide]
   └─ Fetch: table=lake.vec_ivf_flat_l2, columns=[id, wide]
      └─ TopN: keys=[ts DESC], k=2600
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[ts], row_addr=yes
