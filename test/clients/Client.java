import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Runs the statements on standard input through Connector/J: mode "text" by Statement, "prepared" by server-side PreparedStatement, "cursor" by one that fetches
 * its rows in steps. See doc.go.
 */
public class Client {
    static final int FETCH_ROWS = 7;
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        String url = "jdbc:mysql://127.0.0.1:" + args[0] + "/" + args[1]
            + "?useServerPrepStmts=true&useCursorFetch=true&emulateUnsupportedPstmts=false&connectionTimeZone=UTC&forceConnectionTimeZoneToSession=false";
        try (Connection c = DriverManager.getConnection(url, "root", "")) {
            if (args.length > 2 && args[2].equals("metadata")) {
                metadata(c.getMetaData(), args[1]);
                return;
            }
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line; (line = in.readLine()) != null; ) {
                if (!line.isEmpty()) {
                    one(c, line.split("\t"));
                }
            }
        }
    }

    static void one(Connection c, String[] line) {
        String head = "{\"name\":" + quote(line[0]) + ",\"mode\":" + quote(line[1]);
        String sql = new String(Base64.getDecoder().decode(line[2]), StandardCharsets.UTF_8);
        try {
            if (line[1].equals("text")) {
                try (Statement s = c.createStatement()) {
                    OUT.println(head + answer(s.execute(sql) ? s.getResultSet() : null) + "}");
                }
                return;
            }
            try (PreparedStatement s = c.prepareStatement(sql)) {
                if (!s.getClass().getName().endsWith("ServerPreparedStatement")) {
                    throw new SQLException("prepared by the client: " + s.getClass(), "HY000", -2);
                }
                if (line[1].equals("cursor")) {
                    s.setFetchSize(FETCH_ROWS);
                }
                for (int i = 3; i < line.length; i++) {
                    bind(s, i - 2, line[i]);
                }
                OUT.println(head + answer(s.execute() ? s.getResultSet() : null) + "}");
            }
        } catch (SQLException e) {
            OUT.println(head + ",\"code\":" + (e.getErrorCode() == 0 ? -1 : e.getErrorCode()) + ",\"state\":" + quote(e.getSQLState()) + ",\"message\":" + quote(e.getMessage()) + "}");
        }
    }

    static void bind(PreparedStatement s, int at, String arg) throws SQLException {
        byte[] raw = Base64.getDecoder().decode(arg.substring(2));
        String text = new String(raw, StandardCharsets.UTF_8);
        switch (arg.charAt(0)) {
            case 'n' -> s.setNull(at, Types.VARCHAR);
            case 'i' -> s.setLong(at, Long.parseLong(text));
            case 'u' -> s.setBigDecimal(at, new BigDecimal(text)); // a BigInteger goes out as a signed BIGINT
            case 'f' -> s.setDouble(at, Double.parseDouble(text));
            case 'd' -> s.setBigDecimal(at, new BigDecimal(text));
            case 't' -> s.setTimestamp(at, Timestamp.valueOf(text));
            case 'b' -> s.setBytes(at, raw);
            default -> s.setString(at, text);
        }
    }

    static String answer(ResultSet rs) throws SQLException {
        if (rs == null) {
            return ",\"columns\":[],\"rows\":[]";
        }
        ResultSetMetaData meta = rs.getMetaData();
        List<String> columns = new ArrayList<>(), rows = new ArrayList<>();
        for (int i = 1; i <= meta.getColumnCount(); i++) {
            columns.add(quote(meta.getColumnLabel(i)));
        }
        while (rs.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= meta.getColumnCount(); i++) {
                row.add(quote(cell(rs, i, meta.getColumnType(i))));
            }
            rows.add("[" + String.join(",", row) + "]");
        }
        return ",\"columns\":[" + String.join(",", columns) + "],\"rows\":[" + String.join(",", rows) + "]";
    }

    static String cell(ResultSet rs, int i, int type) throws SQLException {
        switch (type) {
            case Types.BINARY, Types.VARBINARY, Types.LONGVARBINARY, Types.BLOB -> {
                byte[] b = rs.getBytes(i);
                return b == null ? null : java.util.HexFormat.of().formatHex(b);
            }
            case Types.BIT, Types.BOOLEAN -> {
                boolean b = rs.getBoolean(i);
                return rs.wasNull() ? null : b ? "1" : "0";
            }
            default -> {
                return rs.getString(i);
            }
        }
    }

    static void metadata(DatabaseMetaData m, String database) throws SQLException {
        print("catalogs", m.getCatalogs(), "TABLE_CAT");
        print("tables", m.getTables(database, null, "%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE");
        print("columns", m.getColumns(database, null, "%", "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE");
        print("scalars", m.getColumns("fixtures", null, "scalars_v22_7", "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE");
        print("indices", m.getIndexInfo(database, null, "images", false, true), "INDEX_NAME", "COLUMN_NAME");
        print("keys", m.getPrimaryKeys(database, null, "images"), "COLUMN_NAME");
        print("imported", m.getImportedKeys(database, null, "images"), "FKCOLUMN_NAME");
        print("procedures", m.getProcedures(database, null, "%"), "PROCEDURE_NAME");
        print("privileges", m.getTablePrivileges(database, null, "images"), "PRIVILEGE");
        print("types", m.getTableTypes(), "TABLE_TYPE");
        OUT.println("{\"name\":\"product\",\"columns\":[\"name\",\"version\"],\"rows\":[[" + quote(m.getDatabaseProductName()) + "," + quote(m.getDatabaseProductVersion()) + "]]}");
    }

    static void print(String name, ResultSet rs, String... columns) throws SQLException {
        List<String> rows = new ArrayList<>(), heads = new ArrayList<>();
        for (String c : columns) {
            heads.add(quote(c));
        }
        while (rs.next()) {
            List<String> row = new ArrayList<>();
            for (String c : columns) {
                row.add(quote(rs.getString(c)));
            }
            rows.add("[" + String.join(",", row) + "]");
        }
        OUT.println("{\"name\":" + quote(name) + ",\"columns\":[" + String.join(",", heads) + "],\"rows\":[" + String.join(",", rows) + "]}");
    }

    static String quote(String s) {
        if (s == null) {
            return "null";
        }
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
