# A top-n by distance becomes a search; a small table is compared exactly.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ Limit: k=3
   └─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide]

# Further keys decide about ties; the distance shown is the one computed.
rule
SELECT id, l2_distance(v, '{q}') AS d FROM lake.vec_ivf_flat_l2 ORDER BY d, id DESC LIMIT 3 OFFSET 2
----
Project: columns=[id, l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) AS d]
└─ TopN: keys=[d NULLS LAST, id DESC], k=3, offset=2
   └─ Project: columns=[id, v, labels, tenant, ts, wide, l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) AS d]
      └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id, distance AS d]
└─ TopN: keys=[distance NULLS LAST, id DESC], k=3, offset=2
   └─ Project: columns=[id, v, labels, tenant, ts, wide, distance AS d, distance]
      └─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
         └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=5, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide]

# Conditions are candidates.
rule
SELECT id FROM lake.vec_ivf_flat_l2 WHERE tenant = 't1' AND array_has(labels, 'ai') ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide], filter=(tenant = 't1') AND array_has(labels, 'ai')
=>
Project: columns=[id]
└─ Limit: k=3
   └─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], candidates=(tenant = 't1') AND array_has(labels, 'ai')

# A similarity is searched from its largest.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY cosine_similarity(v, '{q}') DESC LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[cosine_similarity(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) DESC], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ Limit: k=3
   └─ Project: columns=[id, v, labels, tenant, ts, wide, (1 - CAST(_distance AS float64)) AS distance]
      └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=cosine, k=3, method=exact (index v_idx is for l2, not cosine), columns=[id, v, labels, tenant, ts, wide]

# The farthest rows are no search.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') DESC LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) DESC], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=> the same

# Nor is an expression over the distance.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') + id LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[(l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) + id)], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=> the same

# Nor the NULL vector, whose distances are all NULL.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, NULL) LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, NULL) NULLS LAST], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=> the same

# An inner join that filters is a mask.
rule
SELECT t.id FROM lake.vec_ivf_flat_l2 t JOIN mem.c ON c.id = t.id ORDER BY l2_distance(t.v, '{q}'), t.id LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST, id], k=2
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST, id], k=2
   └─ Join: kind=inner, on=(id = id)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=id in keys of mem.c
      └─ Scan: table=mem.c, columns=[id, z]


rows ordered
SELECT t.id FROM lake.vec_ivf_flat_l2 t JOIN mem.c ON c.id = t.id ORDER BY l2_distance(t.v, '{q}'), t.id LIMIT 2
----
2
4

# So is IN.
rule
SELECT id FROM lake.vec_ivf_flat_l2 WHERE id IN (SELECT id FROM mem.c) ORDER BY l2_distance(v, '{q}') LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=2
   └─ Join: kind=semi, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Project: columns=[id]
         └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST], k=2
   └─ Join: kind=semi, on=(id = id)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=id in keys of mem.c
      └─ Project: columns=[id]
         └─ Scan: table=mem.c, columns=[id, z]

# So are two joins.
rule
SELECT t.id FROM lake.vec_ivf_flat_l2 t JOIN mem.c ON c.id = t.id JOIN mem.a ON a.id = t.id ORDER BY l2_distance(t.v, '{q}'), t.id LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST, id], k=2
   └─ Join: kind=inner, on=(id = id)
      ├─ Join: kind=inner, on=(id = id)
      │  ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      │  └─ Scan: table=mem.c, columns=[id, z]
      └─ Scan: table=mem.a, columns=[id, x, s]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST, id], k=2
   └─ Join: kind=inner, on=(id = id)
      ├─ Join: kind=inner, on=(id = id)
      │  ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=id in keys of mem.a, mask=id in keys of mem.c
      │  └─ Scan: table=mem.c, columns=[id, z]
      └─ Scan: table=mem.a, columns=[id, x, s]


rows ordered
SELECT t.id, c.z, a.x FROM lake.vec_ivf_flat_l2 t JOIN mem.c ON c.id = t.id JOIN mem.a ON a.id = t.id ORDER BY l2_distance(t.v, '{q}'), t.id LIMIT 2
----
2 5 20
4 6 20

# A cut on the other side may fall differently the second time: no mask of it.
rule
SELECT t.id FROM lake.vec_ivf_flat_l2 t JOIN (SELECT id FROM mem.c LIMIT 1) c ON c.id = t.id ORDER BY l2_distance(t.v, '{q}') LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=2
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Project: columns=[id]
         └─ Limit: k=1
            └─ Scan: table=mem.c, columns=[id, z]
=> the same

# A left join keeps every row.
rule
SELECT t.id, c.z FROM lake.vec_ivf_flat_l2 t LEFT JOIN mem.c ON c.id = t.id ORDER BY l2_distance(t.v, '{q}'), t.id LIMIT 2
----
Project: columns=[id, z]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST, id], k=2
   └─ Join: kind=left, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id, z]
└─ TopN: keys=[distance NULLS LAST, id], k=2
   └─ Join: kind=left, on=(id = id)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide]
      └─ Scan: table=mem.c, columns=[id, z]

# An anti join is a mask, too.
rule
SELECT id FROM lake.vec_ivf_flat_l2 t WHERE NOT EXISTS (SELECT 1 FROM mem.c WHERE c.id = t.id) ORDER BY l2_distance(v, '{q}') LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=2
   └─ Join: kind=anti, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Project: columns=[1 AS 1, id]
         └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST], k=2
   └─ Join: kind=anti, on=(id = id)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=id not in keys of mem.c
      └─ Project: columns=[1 AS 1, id]
         └─ Scan: table=mem.c, columns=[id, z]

# So are several equalities, and NOT IN.
rule
SELECT id FROM lake.vec_ivf_flat_l2 t WHERE EXISTS (SELECT 1 FROM lake.vec_ivf_flat_l2 u WHERE u.id = t.id AND u.tenant = t.tenant) ORDER BY l2_distance(v, '{q}') LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=2
   └─ Join: kind=semi, on=(id = id) AND (tenant = tenant)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Project: columns=[1 AS 1, id, tenant]
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST], k=2
   └─ Join: kind=semi, on=(id = id) AND (tenant = tenant)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=(id, tenant) in keys of lake.vec_ivf_flat_l2
      └─ Project: columns=[1 AS 1, id, tenant]
         └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]

rule
SELECT id FROM lake.vec_ivf_flat_l2 t WHERE id NOT IN (SELECT id FROM mem.c) ORDER BY l2_distance(v, '{q}') LIMIT 2
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=2
   └─ Join: kind=null_aware_anti, on=(id = id)
      ├─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Project: columns=[id]
         └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST], k=2
   └─ Join: kind=null_aware_anti, on=(id = id)
      ├─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=2, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide], mask=id not in keys of mem.c
      └─ Project: columns=[id]
         └─ Scan: table=mem.c, columns=[id, z]

# A cut below an aggregate and a join is a search all the same.
rule
SELECT c.z, count(*) FROM (SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 100) t JOIN mem.c ON c.id = t.id GROUP BY c.z
----
Project: columns=[z, COUNT(1) AS count(*)]
└─ Aggregate: keys=[z], aggregates=[count(*)]
   └─ Join: kind=inner, on=(id = id)
      ├─ Project: columns=[id]
      │  └─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=100
      │     └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
      └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[z, COUNT(1) AS count(*)]
└─ Aggregate: keys=[z], aggregates=[count(*)]
   └─ Join: kind=inner, on=(id = id)
      ├─ Project: columns=[id]
      │  └─ Limit: k=100
      │     └─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      │        └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=100, method=exact (167232 bytes of vectors are below ann_exact_bytes), columns=[id, v, labels, tenant, ts, wide]
      └─ Scan: table=mem.c, columns=[id, z]


set
ann = 'force'
----
ok

# Forced, the index serves its metric.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[l2_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ Limit: k=3
   └─ Project: columns=[id, v, labels, tenant, ts, wide, sqrt(CAST(_distance AS float64)) AS distance]
      └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=IVF_FLAT index v_idx (ann = force), columns=[id, v, labels, tenant, ts, wide]

# The plan tells how much of the table the index covers.
explain
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Limit: k=3
└─ Project: columns=[id]
   └─ LateFetch: table=lake.vec_ivf_flat_l2, columns=[id], why=late reads about 9 bytes, early 9
      └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=IVF_FLAT index v_idx, why=ann = force, fragments=2 by index, 1 by scan, nprobes=20, refine=1

# Also that of the index behind a mask.
explain
SELECT id FROM lake.vec_ivf_flat_l2 WHERE id IN (SELECT id FROM mem.c) ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[distance NULLS LAST], k=3
   └─ HashJoin: kind=semi, on=id = id, build=right
      ├─ Project: columns=[id, sqrt(CAST(_distance AS float64)) AS distance]
      │  └─ LateFetch: table=lake.vec_ivf_flat_l2, columns=[id], why=late reads about 6 bytes, early 6
      │     └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=IVF_FLAT index v_idx, why=ann = force, fragments=2 by index, 1 by scan, nprobes=20, refine=1
      │        └─ KeyMask: table=lake.vec_ivf_flat_l2, column=id, keys=Distinct, index=id_idx, kind=BTREE, fragments=2 by index, 1 by scan
      │           └─ Distinct
      │              └─ Project: columns=[id]
      │                 └─ Scan: table=mem.c, columns=[id]
      └─ Scan: table=mem.c, columns=[id]

# And no other.
rule
SELECT id FROM lake.vec_ivf_flat_l2 ORDER BY cosine_distance(v, '{q}') LIMIT 3
----
Project: columns=[id]
└─ TopN: keys=[cosine_distance(v, [1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]) NULLS LAST], k=3
   └─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, v, labels, tenant, ts, wide]
=>
Project: columns=[id]
└─ Limit: k=3
   └─ Project: columns=[id, v, labels, tenant, ts, wide, CAST(_distance AS float64) AS distance]
      └─ Search: table=lake.vec_ivf_flat_l2, column=v, metric=cosine, k=3, method=exact (index v_idx is for l2, not cosine), columns=[id, v, labels, tenant, ts, wide]
