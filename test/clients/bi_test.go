package clients

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// biStatement is what a tool asks before or while it shows a lake. has are cells that the answer must hold; a statement without has must just pass.
type biStatement struct {
	sql string
	has []string
}

func TestBIToolsStart(t *testing.T) {
	l := startLake(t)
	for _, tool := range []struct {
		name string
		asks []biStatement
	}{
		{"Connector/J", connectorStatements()},
		{"Superset", supersetStatements()},
		{"Metabase", metabaseStatements()},
		{"DBeaver", dbeaverStatements()},
		{"Tableau", tableauStatements()},
		{"Power BI", powerBIStatements()},
		{"Grafana", grafanaStatements()},
	} {
		t.Run(tool.name, func(t *testing.T) { askAll(t, l, tool.asks) })
	}
}

// askAll runs the statements on one connection, as a tool does.
func askAll(t *testing.T, l *lake, asks []biStatement) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := l.open(t).Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, ask := range asks {
		rows, err := connection.QueryContext(ctx, ask.sql)
		if err != nil {
			t.Errorf("%v\n%s", err, ask.sql)
			continue
		}
		a, err := goRows(rows)
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			t.Errorf("%v\n%s", err, ask.sql)
			continue
		}
		var cells []string
		for _, r := range a.Rows {
			for _, c := range r {
				cells = append(cells, text(c))
			}
		}
		for _, want := range ask.has {
			if !slices.Contains(cells, want) {
				t.Errorf("%q is not in the answer %q\n%s", want, strings.Join(cells, " | "), ask.sql)
			}
		}
	}
}

func connectorStatements() []biStatement {
	return []biStatement{
		{`/* mysql-connector-j */SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client,
			@@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server,
			@@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect,
			@@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names,
			@@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema,
			@@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation,
			@@wait_timeout AS wait_timeout`, []string{"utf8mb4", "READ-COMMITTED"}},
		{"SHOW VARIABLES WHERE Variable_name = 'language' OR Variable_name = 'net_write_timeout' OR Variable_name = 'time_zone' OR Variable_name = 'lower_case_table_names'", []string{"time_zone"}},
		{"SET character_set_results = NULL", nil},
		{"SET NAMES utf8mb4", nil},
		{"SET autocommit=1", nil},
		{"SET sql_mode='STRICT_TRANS_TABLES'", nil},
		{"SET SESSION TRANSACTION READ ONLY", nil},
		{"SET SESSION TRANSACTION READ WRITE", nil},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil},
		{"SELECT @@session.transaction_read_only", nil},
		{"SHOW WARNINGS", nil},
		{"SET SQL_SELECT_LIMIT=DEFAULT", nil},
		{"SHOW COLLATION", []string{"utf8mb4_0900_bin"}},
		{"SHOW FULL TABLES FROM `demo` LIKE '%'", []string{"images", "BASE TABLE"}},
		{"SHOW FULL COLUMNS FROM `images` FROM `demo` LIKE '%'", []string{"embedding", "json"}},
		{"SHOW KEYS FROM `images` FROM `demo`", []string{"labels_idx"}},
		{"SHOW CREATE TABLE `demo`.`images`", []string{"images"}},
		{`SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, CASE WHEN TABLE_TYPE='BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE
			FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'demo' AND TABLE_NAME LIKE '%' HAVING TABLE_TYPE IN ('TABLE','VIEW') ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME`, []string{"shipments", "TABLE"}},
	}
}

func supersetStatements() []biStatement {
	const day = "SELECT DATE(captured_at) AS d, COUNT(*) AS n FROM images WHERE captured_at >= STR_TO_DATE('2026-03-01 00:00:00', '%Y-%m-%d %H:%i:%s') GROUP BY DATE(captured_at) ORDER BY n DESC LIMIT 1000"
	return []biStatement{
		{"SELECT VERSION()", nil},
		{"SELECT @@version, @@version_comment", []string{"lakesql"}},
		{"SELECT DATABASE()", []string{"demo"}},
		{"SELECT @@sql_mode", nil},
		{"SELECT @@lower_case_table_names", nil},
		{"SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1", []string{"test plain returns"}},
		{"SELECT CAST('test collated returns' AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin AS anon_1", []string{"test collated returns"}},
		{"SELECT 'x' AS `some label`", []string{"x"}},
		{"ROLLBACK", nil},
		{"SHOW DATABASES", []string{"demo", "fixtures", "information_schema"}},
		{"SHOW FULL TABLES FROM `demo`", []string{"orders"}},
		{"SHOW CREATE TABLE `orders`", []string{"orders"}},
		{"SELECT table_name FROM information_schema.views WHERE table_schema = 'demo'", nil},
		{day, nil},
		{"SELECT DATE(DATE_SUB(captured_at, INTERVAL DAYOFWEEK(captured_at) - 1 DAY)) AS w, COUNT(*) FROM images GROUP BY w ORDER BY w LIMIT 5", nil},
		{"SELECT DATE(DATE_SUB(captured_at, INTERVAL DAYOFMONTH(captured_at) - 1 DAY)) AS m, COUNT(*) FROM images GROUP BY m ORDER BY m", nil},
		{"SELECT DATE(DATE_SUB(captured_at, INTERVAL DAYOFYEAR(captured_at) - 1 DAY)) AS y, COUNT(*) FROM images GROUP BY y", []string{"2026-01-01"}},
		{"SELECT DATE_ADD(DATE(captured_at), INTERVAL HOUR(captured_at) HOUR) AS h, COUNT(*) FROM images GROUP BY h ORDER BY h LIMIT 5", nil},
		{"SELECT MAKEDATE(YEAR(captured_at), 1) + INTERVAL QUARTER(captured_at) QUARTER - INTERVAL 1 QUARTER AS q, COUNT(*) FROM images GROUP BY q ORDER BY q LIMIT 4", []string{"2026-04-01", "2026-07-01"}},
		{"SELECT tenant AS tenant, COUNT(*) AS `count` FROM `demo`.`images` GROUP BY tenant ORDER BY `count` DESC LIMIT 10", []string{"acme"}},
		{"SELECT * FROM (SELECT carrier, SUM(amount) AS total FROM orders GROUP BY carrier) AS virtual_table LIMIT 100", nil},
		{"EXPLAIN SELECT tenant, COUNT(*) FROM images GROUP BY tenant", nil},
	}
}

func metabaseStatements() []biStatement {
	return []biStatement{
		{"SELECT 1", []string{"1"}},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", nil},
		{"SELECT @@GLOBAL.time_zone AS global_tz, @@system_time_zone AS system_tz, TIME_FORMAT(TIMEDIFF(NOW(), CONVERT_TZ(NOW(), @@GLOBAL.time_zone, '+00:00')), '%H:%i') AS offset", []string{"00:00"}},
		{"SET @@session.time_zone = 'UTC'", nil},
		{"SELECT `demo`.`images`.`id` AS `id`, `demo`.`images`.`tenant` AS `tenant` FROM `demo`.`images` LIMIT 2000", []string{"acme"}},
		{"SELECT SUBSTRING(`demo`.`images`.`note`, 1, 1234) AS `substring1` FROM `demo`.`images` LIMIT 10000", nil},
		{"SELECT COUNT(DISTINCT `demo`.`orders`.`carrier`) AS `count` FROM `demo`.`orders`", []string{"20"}},
		{"SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(`ordered_at`, '%Y-%m'), '-01'), '%Y-%m-%d') AS m, COUNT(*) AS n FROM orders GROUP BY STR_TO_DATE(CONCAT(DATE_FORMAT(`ordered_at`, '%Y-%m'), '-01'), '%Y-%m-%d') ORDER BY m ASC LIMIT 3", nil},
		{"SELECT STR_TO_DATE(CONCAT(YEARWEEK(`ordered_at`), ' Sunday'), '%X%V %W') AS w, COUNT(*) AS n FROM orders GROUP BY w ORDER BY w LIMIT 3", nil},
		{"SELECT c.table_name, c.column_name, c.data_type, c.is_nullable, c.column_key, c.extra FROM information_schema.columns c JOIN information_schema.tables t ON c.table_schema = t.table_schema AND c.table_name = t.table_name WHERE c.table_schema = 'demo' ORDER BY c.table_name, c.ordinal_position", []string{"embedding", "decimal"}},
		{"SELECT table_name, column_name, index_name, non_unique FROM information_schema.statistics WHERE table_schema = 'demo'", []string{"labels_idx"}},
		{"SELECT constraint_name, table_name, column_name, referenced_table_name FROM information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL AND table_schema = 'demo'", nil},
		{"SELECT avg(`amount`), min(`amount`), max(`amount`) FROM orders", nil},
	}
}

func dbeaverStatements() []biStatement {
	return []biStatement{
		{"SELECT DATABASE()", []string{"demo"}},
		{"SELECT @@GLOBAL.character_set_server, @@GLOBAL.collation_server", []string{"utf8mb4"}},
		{"SHOW ENGINES", nil},
		{"SHOW CHARSET", []string{"utf8mb4"}},
		{"SHOW COLLATION", nil},
		{"SHOW PLUGINS", nil},
		{"SHOW VARIABLES LIKE 'lower_case_%'", []string{"lower_case_table_names"}},
		{"SHOW GLOBAL STATUS", nil},
		{"SHOW PRIVILEGES", nil},
		{"SHOW PROCESSLIST", nil},
		{"SELECT * FROM information_schema.SCHEMATA", []string{"demo"}},
		{"SHOW FULL TABLES FROM `demo`", []string{"images"}},
		{"SHOW TABLE STATUS FROM `demo`", []string{"images"}},
		{"SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA='demo' AND TABLE_NAME='images'", []string{"images"}},
		{"SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='demo' AND TABLE_NAME='images' ORDER BY ORDINAL_POSITION", []string{"trajectory"}},
		{"SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA='demo' AND TABLE_NAME='images' ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX", []string{"embedding_idx"}},
		{"SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE, tc.TABLE_NAME FROM information_schema.CHECK_CONSTRAINTS cc, information_schema.TABLE_CONSTRAINTS tc WHERE cc.CONSTRAINT_SCHEMA = tc.CONSTRAINT_SCHEMA AND cc.CONSTRAINT_NAME = tc.CONSTRAINT_NAME AND tc.CONSTRAINT_TYPE = 'CHECK' AND cc.CONSTRAINT_SCHEMA='demo'", nil},
		{"SELECT kc.CONSTRAINT_NAME, kc.TABLE_NAME, kc.COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE kc WHERE kc.TABLE_SCHEMA='demo' AND kc.REFERENCED_TABLE_NAME IS NULL AND kc.TABLE_NAME='images'", nil},
		{"SELECT * FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA='demo' AND ROUTINE_TYPE IN ('PROCEDURE','FUNCTION')", nil},
		{"SHOW TRIGGERS FROM `demo`", nil},
		{"SELECT * FROM information_schema.EVENTS WHERE EVENT_SCHEMA='demo'", nil},
		{"SELECT * FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA='demo' AND TABLE_NAME='images'", nil},
		{"SELECT * FROM information_schema.VIEWS WHERE TABLE_SCHEMA='demo'", nil},
		{"SELECT t.TABLE_NAME FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = 'demo' AND (t.TABLE_NAME LIKE '%ord%') ORDER BY t.TABLE_NAME LIMIT 100", []string{"orders"}},
		{"SHOW CREATE TABLE `demo`.`shipments`", []string{"shipments"}},
		{"SELECT i.* FROM demo.images i LIMIT 0, 200", []string{"acme"}},
		{"SELECT COUNT(*) FROM `demo`.`images`", []string{"4000"}},
		{"EXPLAIN FORMAT=JSON SELECT count(*) FROM images WHERE array_has(labels, 'wet')", nil},
		{"SET SESSION SQL_SELECT_LIMIT=200", nil},
		{"SET SESSION SQL_SELECT_LIMIT=DEFAULT", nil},
	}
}

func tableauStatements() []biStatement {
	return []biStatement{
		{"SET NAMES utf8mb4", nil},
		{"SET SQL_AUTO_IS_NULL=0", nil},
		{"SELECT @@sql_mode", nil},
		{"SHOW VARIABLES LIKE 'sql_mode'", []string{"sql_mode"}},
		{"SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'demo' AND TABLE_TYPE IN ('BASE TABLE','VIEW')", []string{"BASE TABLE"}},
		{"SELECT `TABLE_NAME` COLLATE utf8mb4_0900_bin AS `name` FROM `information_schema`.`TABLES` WHERE `TABLE_SCHEMA` COLLATE utf8mb4_0900_bin = 'demo' ORDER BY `name`", []string{"images", "orders"}},
		{"SELECT `column_name`, `referenced_table_name`, `referenced_column_name` FROM `information_schema`.`key_column_usage` WHERE `table_schema` = 'demo' AND `table_name` = 'orders' AND `referenced_table_name` IS NOT NULL", nil},
		{"SHOW KEYS FROM `demo`.`images`", []string{"tenant_idx"}},
		{"SELECT * FROM `demo`.`orders` LIMIT 0", nil},
		{"SELECT `orders`.`carrier` AS `carrier`, SUM(`orders`.`amount`) AS `sum:amount:ok` FROM `orders` GROUP BY 1", []string{"carrier-00"}},
		{"SELECT SUM(1) AS `cnt:orders:ok` FROM `orders` HAVING COUNT(1) > 0", nil},
		{"SELECT ADDDATE(DATE_FORMAT(`ordered_at`, '%Y-%m-01 00:00:00'), INTERVAL 0 SECOND) AS `tmn`, COUNT(*) FROM `orders` GROUP BY 1 ORDER BY 1 LIMIT 2", nil},
	}
}

func powerBIStatements() []biStatement {
	return []biStatement{
		{"SHOW VARIABLES", []string{"max_allowed_packet", "version_comment"}},
		{"SHOW COLLATION", nil},
		{"SELECT TIMEDIFF(CURTIME(), UTC_TIME())", nil},
		{"SHOW FULL TABLES FROM `demo` WHERE TABLE_TYPE <> 'VIEW'", []string{"images"}},
		{"SELECT * FROM information_schema.VIEWS WHERE TABLE_SCHEMA LIKE 'demo'", nil},
		{"SHOW FULL COLUMNS FROM `demo`.`images`", []string{"labels"}},
		{"SHOW INDEX FROM `demo`.`images`", []string{"captured_at_idx"}},
		{"SELECT `$Table`.`id`, `$Table`.`tenant` FROM `demo`.`images` `$Table` LIMIT 4096", []string{"acme"}},
		{"SELECT COUNT(*) AS `$RowCount` FROM `demo`.`orders`", nil},
	}
}

func grafanaStatements() []biStatement {
	return []biStatement{
		{"SELECT UNIX_TIMESTAMP(captured_at) DIV 86400 * 86400 AS `time`, count(*) AS n FROM images WHERE captured_at BETWEEN FROM_UNIXTIME(1772323200) AND FROM_UNIXTIME(1775001600) GROUP BY 1 ORDER BY 1", []string{"1772323200"}},
		{"SELECT captured_at AS `time`, site AS value, tenant AS metric FROM images WHERE captured_at >= '2026-10-01' ORDER BY captured_at LIMIT 100", nil},
		{"SELECT DISTINCT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_TYPE != 'SYSTEM VIEW' ORDER BY TABLE_SCHEMA", []string{"demo"}},
		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'demo' ORDER BY TABLE_NAME", []string{"images"}},
		{"SELECT column_name, data_type FROM information_schema.columns WHERE quote(table_schema) = quote('demo') AND quote(table_name) = quote('orders')", []string{"amount"}},
	}
}
