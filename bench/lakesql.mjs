// Runs the suite against `lakesql serve` over the MySQL protocol; one JSON line per query, in the form of the peers' lines.
// Usage: node lakesql.mjs --suite DIR --data DIR --port N [--query L1,V3] [--runs 7] [--ann-runs 20]
import mysql from "mysql2/promise";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: opt } = parseArgs({ options: {
  suite: { type: "string" }, data: { type: "string" }, port: { type: "string" }, database: { type: "string", default: "lake" }, query: { type: "string" },
  runs: { type: "string", default: "7" }, "ann-runs": { type: "string", default: "20" }, pid: { type: "string" },
} });
if (!opt.suite || !opt.data || !opt.port) { console.error("usage: node lakesql.mjs --suite DIR --data DIR --port N [--query L1,V3] [--runs 7]"); process.exit(2); }
const { VECTOR, ANN, ORDERED, text } = await import(pathToFileURL(path.resolve(opt.suite, "suite.mjs")));
const meta = JSON.parse(fs.readFileSync(path.join(opt.data, "meta.json"), "utf8"));
const say = (o) => console.log(JSON.stringify({ peer: "lakesql", ...o }));

// Settings per query. Exact where the aim is an exact answer; otherwise the index with the suite's probes and refine.
const exact = { ann: "off" };
const force = (refine) => ({ ann: "force", nprobes: 20, refine_factor: refine });
const SETTINGS = {
  V1: exact, V2: exact, V4: exact, J1: exact, J2: exact,
  V3: force(1), V3r: force(10), V5: force(4), G1: force(1), G2: force(1), J1a: force(4), J2a: force(4),
};

const cell = (v) => v === null || v === undefined ? "NULL" : Buffer.isBuffer(v) ? createHash("md5").update(v).digest("hex") : String(v);
const checksum = (rows, ordered) => {
  const t = rows.map((r) => r.map(cell).join("|"));
  if (!ordered) t.sort();
  return createHash("sha256").update(t.join("\n")).digest("hex").slice(0, 16);
};
const quant = (a, q) => { const s = [...a].sort((x, y) => x - y); return +s[Math.min(s.length - 1, Math.ceil(q * s.length) - 1)].toFixed(2); };

const open = async () => mysql.createConnection({ host: "127.0.0.1", port: +opt.port, user: "root", database: opt.database, rowsAsArray: true, supportBigNumbers: true, dateStrings: true });
const dist = (q) => `l2_distance(embedding, '[${q.join(",")}]')`;
const sqlOf = (id, qi) => text(meta, qi, dist)[id.replace(/a$/, "")];
const truthFile = path.join(opt.data, "truth.json");
const truth = fs.existsSync(truthFile) ? JSON.parse(fs.readFileSync(truthFile, "utf8")) : null;
const wantedIds = (base, qi) => (base === "V4" ? truth.V4 : truth.all)[qi].slice(0, base === "V4" ? 100 : base.startsWith("V3") ? 10 : 1000);

let conn = await open();
const apply = async (c, id) => {
  for (const [k, v] of Object.entries({ ann: "auto", nprobes: 20, refine_factor: 1, ...SETTINGS[id] })) await c.query(`SET SESSION ${k} = ${typeof v === "string" ? `'${v}'` : v}`);
};
const ids = opt.query ? opt.query.split(",") : [...Object.keys(text(meta, 0, dist)), "J1a", "J2a"].sort();
for (const id of ids) {
  const base = id.replace(/a$/, "").replace(/^J.*/, id), vec = VECTOR.has(id.replace(/a$/, "")), ann = SETTINGS[id]?.ann === "force";
  try {
    await apply(conn, id);
    const drop = /^[VG]/.test(id);
    const run = async (qi, c = conn) => (await c.query(sqlOf(id, qi)))[0];
    const first = await run(0);
    for (let i = 1; ann && i < 3; i++) await run(i);
    const ms = [];
    let hit = 0, of = 0;
    for (let i = 0; i < (ann ? +opt["ann-runs"] : +opt.runs); i++) {
      const qi = vec ? i % meta.queries.length : 0, s = performance.now(), rows = await run(qi);
      ms.push(performance.now() - s);
      if (truth && ANN.has(id)) {
        const want = wantedIds(base, qi), got = new Set(rows.map((r) => Number(r[0])));
        of += want.length;
        for (const x of want) if (got.has(x)) hit++;
      }
    }
    const kept = drop ? first.map((r) => r.slice(0, -1)) : first;
    const line = { query: id, mode: vec ? (ann ? "ann" : "exact") : undefined, settings: SETTINGS[id], p50_ms: quant(ms, 0.5), p95_ms: quant(ms, 0.95), n: ms.length, rows: first.length, checksum: checksum(kept, ORDERED.has(id.replace(/a$/, ""))) };
    if (of) line.recall = +(hit / of).toFixed(4);
    if (first.length === 1 && /^[LA]/.test(id)) line.value = Number(first[0][0]);
    const c = [];
    for (let i = 0; i < 3; i++) { const s = performance.now(), fresh = await open(); await apply(fresh, id); await run(0, fresh); c.push(performance.now() - s); await fresh.end(); }
    line.open_ms = quant(c, 0.5);
    say(line);
  } catch (e) { say({ query: id, error: String(e.message ?? e).split("\n")[0].slice(0, 300) }); }
}
const trivial = [];
for (let i = 0; i < 50; i++) { const s = performance.now(); await conn.query("SELECT 1"); trivial.push(performance.now() - s); }
say({ query: "_trivial", p50_ms: quant(trivial, 0.5) });
if (opt.pid) {
  const peak = /VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${opt.pid}/status`, "utf8"));
  if (peak) say({ query: "_process", peak_rss_mb: Math.round(peak[1] / 1024) });
}
await conn.end();
