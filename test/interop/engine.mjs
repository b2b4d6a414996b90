// Drives LanceDB for the interop tests: one JSON request a line on stdin, one JSON answer a line on stdout, each with "ok" or "error".
import readline from "node:readline";

let lancedb;
try {
  lancedb = await import("@lancedb/lancedb");
} catch (e) {
  console.log(JSON.stringify({ error: `${e.message}; run test/interop/setup` }));
  process.exit(3);
}

const plain = (rows) => rows.map((r) => JSON.parse(JSON.stringify(r, (_, v) => (typeof v === "bigint" ? Number(v) : v))));

async function open(r) {
  const db = await lancedb.connect(r.lake);
  return db.openTable(r.table);
}

function query(t, r) {
  let q = r.vector ? t.vectorSearch(Float32Array.from(r.vector)) : t.query();
  if (r.vector) {
    q = q.column(r.column).distanceType(r.metric ?? "l2");
    if (r.nprobes) q = q.nprobes(r.nprobes);
    if (r.bypass) q = q.bypassVectorIndex();
  }
  if (r.filter) q = q.where(r.filter);
  if (r.select) q = q.select(r.select);
  if (r.limit) q = q.limit(r.limit);
  return q;
}

const handlers = {
  async tables(r) { return (await lancedb.connect(r.lake)).tableNames(); },
  async count(r) { return (await open(r)).countRows(r.filter); },
  async query(r) { return plain(await query(await open(r), r).toArray()); },
  async explain(r) { return query(await open(r), r).explainPlan(true); },
  async indices(r) { return plain(await (await open(r)).listIndices()); },
  async optimize(r) { await (await open(r)).optimize(); return null; },
};

console.log(JSON.stringify({ ok: "ready" }));
for await (const line of readline.createInterface({ input: process.stdin })) {
  const r = JSON.parse(line);
  let answer;
  try {
    answer = { ok: await handlers[r.op](r) };
  } catch (e) {
    answer = { error: String(e) };
  }
  console.log(JSON.stringify(answer));
}
