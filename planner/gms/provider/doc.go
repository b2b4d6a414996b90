// Package provider is go-mysql-server's view of lakesql: databases, tables, functions and variables.
//
// It owns: the mapping of catalogs to databases and of Arrow types to MySQL types, the pinning of table versions for one statement and for a transaction, the names of lakesql's
// functions for name resolution, the system variables and the database "lakesql". It does not plan: package translate turns statements into our own
// plans. What the row engine of go-mysql-server runs nevertheless reads tables through Table.PartitionRows, which is capped.
//
// I1: within a statement one table name at one AS OF gives one version (Statement).
// I2: the MySQL type of a column is a function of its Arrow type alone.
// I3: a transaction that holds what it reads gives one version of a name to all of its statements (Transaction), lakesql's own tables aside.
//
// Start reading at Provider, then Statement.
package provider
