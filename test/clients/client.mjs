// Runs the statements on standard input through mysql2: mode "text" by query, mode "prepared" by execute. See doc.go for the lines.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, port, database] = process.argv.slice(2);
const mysql = createRequire(modules + "/")("mysql2/promise");

const argument = (text) => {
  const [kind, value] = [text[0], Buffer.from(text.slice(2), "base64")];
  switch (kind) {
    case "n": return null;
    case "u": return BigInt(value.toString());
    case "i": case "f": return Number(value.toString());
    case "b": return value;
    case "t": return new Date(value.toString().replace(" ", "T") + "Z");
    default: return value.toString();
  }
};
// mysql2 reads the text of a DOUBLE with a parser of its own that misses the last digit.
const exact = (field, next) => field.type === "DOUBLE" || field.type === "FLOAT" ? field.string() : next();
const cell = (v) => v === null ? null : Buffer.isBuffer(v) ? v.toString("hex") : String(v);

const connection = await mysql.createConnection({
  host: "127.0.0.1", port: Number(port), user: "root", database, rowsAsArray: true, timezone: "Z",
  supportBigNumbers: true, bigNumberStrings: true, dateStrings: true, jsonStrings: true,
});
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [name, mode, statement, ...args] = line.split("\t");
  const sql = Buffer.from(statement, "base64").toString();
  const out = { name, mode };
  try {
    const [rows, fields] = mode === "text" ? await connection.query({ sql, typeCast: exact }) : await connection.execute(sql, args.map(argument));
    out.columns = (fields ?? []).map((f) => f.name);
    out.rows = Array.isArray(rows) ? rows.map((r) => r.map(cell)) : [];
  } catch (e) {
    Object.assign(out, { code: e.errno ?? -1, state: e.sqlState ?? "", message: e.message });
  }
  console.log(JSON.stringify(out));
}
await connection.end();
