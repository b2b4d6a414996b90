# The smallest result comes first; the larger side streams.
rule
SELECT a.id FROM lake.labels_v21 l JOIN a ON a.id = l.id JOIN c ON c.id = a.id
----
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Join: kind=inner, on=(id = id)
   │  ├─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
   │  └─ Scan: table=mem.a, columns=[id, x, s]
   └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.c, columns=[id, z]

# A cross product comes last.
rule
SELECT a.id FROM a, c, lake.labels_v21 l WHERE l.id = a.id AND l.name = 'x'
----
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Join: kind=inner
   │  ├─ Scan: table=mem.a, columns=[id, x, s]
   │  └─ Scan: table=mem.c, columns=[id, z]
   └─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name], filter=(name = 'x')
=>
Project: columns=[id]
└─ Project: columns=[id, x, s, id, z, id, labels, nums, name]
   └─ Join: kind=inner
      ├─ Join: kind=inner, on=(id = id)
      │  ├─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name], filter=(name = 'x')
      │  └─ Scan: table=mem.a, columns=[id, x, s]
      └─ Scan: table=mem.c, columns=[id, z]

# A condition over three tables waits for the third.
rule
SELECT a.id FROM a JOIN b ON a.id = b.id JOIN c ON c.id = a.id WHERE a.x + b.y > c.z
----
Project: columns=[id]
└─ Join: kind=inner, on=((x + y) > z) AND (id = id)
   ├─ Join: kind=inner, on=(id = id)
   │  ├─ Scan: table=mem.a, columns=[id, x, s]
   │  └─ Scan: table=mem.b, columns=[id, y]
   └─ Scan: table=mem.c, columns=[id, z]
=> the same

# A left join is one part, with the filter above it.
rule
SELECT a.id FROM (SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL) a JOIN c ON c.id = a.id
----
Project: columns=[id]
└─ Join: kind=inner, on=(id = id)
   ├─ Project: columns=[id]
   │  └─ Filter: where=is_null(id)
   │     └─ Join: kind=left, on=(id = id)
   │        ├─ Scan: table=mem.a, columns=[id, x, s]
   │        └─ Scan: table=mem.b, columns=[id, y]
   └─ Scan: table=mem.c, columns=[id, z]
=>
Project: columns=[id]
└─ Project: columns=[id, id, z]
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.c, columns=[id, z]
      └─ Project: columns=[id]
         └─ Filter: where=is_null(id)
            └─ Join: kind=left, on=(id = id)
               ├─ Scan: table=mem.a, columns=[id, x, s]
               └─ Scan: table=mem.b, columns=[id, y]


rows
SELECT a.id FROM (SELECT a.id FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL) a JOIN c ON c.id = a.id
----
4

# A semi join keeps its ON.
rule
SELECT a.id FROM a JOIN c ON c.id = a.id WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.y < c.z * 10)
----
Project: columns=[id]
└─ Join: kind=semi, on=(id = id) AND (y < (z * 10))
   ├─ Join: kind=inner, on=(id = id)
   │  ├─ Scan: table=mem.a, columns=[id, x, s]
   │  └─ Scan: table=mem.c, columns=[id, z]
   └─ Project: columns=[1 AS 1, id, y]
      └─ Scan: table=mem.b, columns=[id, y]
=> the same


rows
SELECT a.id FROM a JOIN c ON c.id = a.id WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id OR b.y > c.z)
----
2
4

# A union goes by position, so the columns keep their order.
rule
SELECT * FROM b JOIN lake.labels_v21 l ON l.id = b.id UNION ALL SELECT * FROM b JOIN lake.labels_v21 l ON l.id = b.id
----
Union
├─ Project: columns=[id, y, id, labels, nums, name]
│  └─ Join: kind=inner, on=(id = id)
│     ├─ Scan: table=mem.b, columns=[id, y]
│     └─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
└─ Project: columns=[id, y, id, labels, nums, name]
   └─ Join: kind=inner, on=(id = id)
      ├─ Scan: table=mem.b, columns=[id, y]
      └─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
=>
Union
├─ Project: columns=[id, y, id, labels, nums, name]
│  └─ Project: columns=[id, y, id, labels, nums, name]
│     └─ Join: kind=inner, on=(id = id)
│        ├─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
│        └─ Scan: table=mem.b, columns=[id, y]
└─ Project: columns=[id, y, id, labels, nums, name]
   └─ Project: columns=[id, y, id, labels, nums, name]
      └─ Join: kind=inner, on=(id = id)
         ├─ Scan: table=lake.labels_v21, columns=[id, labels, nums, name]
         └─ Scan: table=mem.b, columns=[id, y]
