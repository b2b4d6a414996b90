// node best.mjs --suite DIR RUN.jsonl...: one table of the lowest p50 of the runs per peer and query, with recall, whether lakesql's exact answers have the peers'
// checksums, and lakesql's time over the best peer's. Exit code 1 when an exact answer differs.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values: opt, positionals } = parseArgs({ allowPositionals: true, options: { suite: { type: "string" } } });
const { TITLES, ANN } = await import(pathToFileURL(path.resolve(opt.suite, "suite.mjs")));
const best = new Map(), peers = [];
for (const f of positionals) for (const l of fs.readFileSync(f, "utf8").split("\n")) {
  if (!l.startsWith("{")) continue;
  const o = JSON.parse(l), k = `${o.peer} ${o.query}`;
  if (!peers.includes(o.peer)) peers.push(o.peer);
  if (o.error) console.error(`${k}: ${o.error}`);
  if (o.p50_ms !== undefined && !(best.get(k)?.p50_ms <= o.p50_ms)) best.set(k, o);
}
let wrong = 0;
const show = (o) => !o ? "" : `${o.p50_ms < 10 ? o.p50_ms.toFixed(2) : Math.round(o.p50_ms)}${o.recall !== undefined ? ` (${o.recall.toFixed(2)})` : ""}`;
console.log(`| query | ${peers.join(" | ")} | lakesql / best peer | answer |\n| --- |${peers.map(() => " ---: |").join("")} ---: | --- |`);
for (const id of Object.keys(TITLES).sort()) {
  const ours = best.get(`lakesql ${id}`), others = peers.filter((p) => p !== "lakesql").map((p) => best.get(`${p} ${id}`)).filter(Boolean);
  if (!ours && !others.length) continue;
  const ratio = ours && others.length ? (ours.p50_ms / Math.min(...others.map((o) => o.p50_ms))).toFixed(2) : "";
  let answer = "";
  if (ours && ours.mode !== "ann" && others.length) {
    const exact = others.filter((o) => o.mode !== "ann");
    const same = exact.filter((o) => o.checksum === ours.checksum).length;
    answer = exact.length ? (same ? `equal (${same} of ${exact.length})` : "DIFFERENT") : "";
    if (exact.length && !same) wrong++;
  } else if (ours && ANN.has(id)) answer = "approximate";
  console.log(`| ${id} ${TITLES[id]} | ${peers.map((p) => show(best.get(`${p} ${id}`))).join(" | ")} | ${ratio} | ${answer} |`);
}
for (const p of peers) { const o = [...best.values()].find((x) => x.peer === p && x.query === "_trivial"); if (o) console.log(`\na trivial statement of ${p}: ${o.p50_ms} ms`); }
process.exit(wrong ? 1 : 0);
