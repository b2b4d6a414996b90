# Labels.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE array_has(labels, 'ai')
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ai, fragments=2 by index, 1 by scan

# Any and all.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE array_has_any(labels, ['ai','comedy']) AND NOT array_has_all(labels, ['ai','comedy'])
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ And
   ├─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ANY (ai, comedy), fragments=2 by index, 1 by scan
   └─ Not
      └─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ALL (ai, comedy), fragments=2 by index, 1 by scan

# AND reads the rest for the rows that are left.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE tenant = 't1' AND array_has(labels, 'ai') AND length(wide) > 10
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ And
   ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=tenant_idx, kind=BITMAP, predicate=tenant = t1, fragments=2 by index, 1 by scan
   ├─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ai, fragments=2 by index, 1 by scan
   └─ CandidateScan: table=lake.vec_ivf_flat_l2, columns=[wide], where=(length(wide) > 10)

# OR: the branches without an index read what is not TRUE yet.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE array_has(labels, 'ai') OR id < 5 OR length(wide) > 10
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ Or
   ├─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ai, fragments=2 by index, 1 by scan
   ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=id_idx, kind=BTREE, predicate=id IN RANGE ((null), 5), fragments=2 by index, 1 by scan
   └─ CandidateScan: table=lake.vec_ivf_flat_l2, columns=[wide], where=(length(wide) > 10)

# OR without any index is one scan.
explain
SELECT id FROM lake.vec_ivf_flat_l2 WHERE length(wide) > 10 OR length(tenant) > 5
----
Project: columns=[id]
└─ Scan: table=lake.vec_ivf_flat_l2, columns=[id, tenant, wide], filter=((length(wide) > 10) OR (length(tenant) > 5))

# Bounds on one column are asked together; a flipped comparison counts.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE id >= 10 AND 20 > id
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ IndexLookup: table=lake.vec_ivf_flat_l2, index=id_idx, kind=BTREE, predicate=id IN RANGE [10, 20), fragments=2 by index, 1 by scan

# Bounds on two columns are not.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE id >= 10 AND ts < '2023-11-15 00:00:00'
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ And
   ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=ts_idx, kind=BTREE, predicate=ts IN RANGE ((null), 2023-11-15T00:00:00), fragments=2 by index, 1 by scan
   └─ IndexLookup: table=lake.vec_ivf_flat_l2, index=id_idx, kind=BTREE, predicate=id IN RANGE [10, (null)), fragments=2 by index, 1 by scan

# IN, IS NULL, IS NOT NULL.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE id IN (1,2,3) AND tenant IS NOT NULL AND labels IS NULL
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ And
   ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=id_idx, kind=BTREE, predicate=id IN (1, 2, 3), fragments=2 by index, 1 by scan
   ├─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels IS NULL, fragments=2 by index, 1 by scan
   └─ Not
      └─ IndexLookup: table=lake.vec_ivf_flat_l2, index=tenant_idx, kind=BITMAP, predicate=tenant IS NULL, fragments=2 by index, 1 by scan

# Needles that the index cannot answer say why.
explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE array_has(labels, NULL) OR array_has(labels, tenant) OR array_has_all(labels, []) OR id = 1
----
Scan: table=lake.vec_ivf_flat_l2, columns=[wide]
└─ Or
   ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=id_idx, kind=BTREE, predicate=id = 1, fragments=2 by index, 1 by scan
   ├─ CandidateScan: table=lake.vec_ivf_flat_l2, columns=[labels], where=array_has(labels, NULL), no_index=the needle is NULL
   ├─ CandidateScan: table=lake.vec_ivf_flat_l2, columns=[labels tenant], where=array_has(labels, tenant), no_index=the needle is not a constant
   └─ CandidateScan: table=lake.vec_ivf_flat_l2, columns=[labels], where=array_has_all(labels, []), no_index=the needle is empty, has a NULL, or has a value that the element type cannot hold

# A count takes the size of the set.
explain
SELECT count(*) FROM lake.vec_ivf_flat_l2 WHERE NOT (array_has(labels, 'ai') AND tenant = 't1')
----
CountRows: table=lake.vec_ivf_flat_l2
└─ Not
   └─ And
      ├─ IndexLookup: table=lake.vec_ivf_flat_l2, index=tenant_idx, kind=BITMAP, predicate=tenant = t1, fragments=2 by index, 1 by scan
      └─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ai, fragments=2 by index, 1 by scan

# Candidates of a search.
explain
SELECT id FROM lake.vec_ivf_flat_l2 WHERE array_has(labels, 'ai') ORDER BY l2_distance(v, '{q}') LIMIT 3
----
Limit: k=3
└─ Project: columns=[id]
   └─ LateFetch: table=lake.vec_ivf_flat_l2, columns=[id], why=late reads about 9 bytes, early 27
      └─ VectorSearch: table=lake.vec_ivf_flat_l2, column=v, metric=l2, k=3, method=exact, why=167232 bytes of vectors are below ann_exact_bytes
         └─ LabelIndexLookup: table=lake.vec_ivf_flat_l2, index=labels_idx, kind=LABEL_LIST, predicate=labels HAS ai, fragments=2 by index, 1 by scan


set
prefilter = 'scan'
----
ok


explain
SELECT wide FROM lake.vec_ivf_flat_l2 WHERE array_has(labels, 'ai')
----
Project: columns=[wide]
└─ Scan: table=lake.vec_ivf_flat_l2, columns=[labels, wide], filter=array_has(labels, 'ai'), no_index=prefilter = scan, or a table without indices
