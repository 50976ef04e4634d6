import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { judgeTrace } from "./trace.js";

const body = '{\\"model\\":\\"m\\",\\"prompt\\":\\"one\\"}';
const sha256 = createHash("sha256").update('{"model":"m","prompt":"one"}').digest("hex");
const key = `k1:${"a".repeat(64)}`;
const receipt = `{\\"type\\":\\"intent\\",\\"key\\":\\"${key}\\",\\"request\\":${body}}\\n`;

/** A paid request and a saved file in the order that the promises ask for, as strace shows them. */
const inOrder = [
  `7 pwrite64(21</w/.bulkgen/state.db-wal>, "\\2a${sha256}\\0", 4096, 56) = 4096`,
  "7 fsync(21</w/.bulkgen/state.db-wal>) = 0",
  `7 pwrite64(22</s/accounts.db-wal>, "\\2${key}\\0", 4096, 56) = 4096`,
  "7 fdatasync(22</s/accounts.db-wal>) = 0",
  "7 fsync(23</s>) = 0",
  `8 write(31</w/.bulkgen/receipts.jsonl>, "${receipt}", 400 <unfinished ...>`,
  '7 write(5<socket:[666]>, "GET /api/v1/task/1 HTTP/1.1"..., 160) = 160',
  "8 <... write resumed>) = 400",
  "9 fsync(31</w/.bulkgen/receipts.jsonl> <unfinished ...>",
  "9 <... fsync resumed>) = 0",
  "9 fsync(32</w/.bulkgen>) = 0",
  `7 writev(33<socket:[667]>, [{iov_base="POST /api/v1/generate HTTP/1.1\\r\\n", iov_len=214}, {iov_base="${body}", iov_len=57}], 2) = 271`,
  '8 write(40</o/.bulkgen-1-1.part>, "..."..., 900) = 900',
  "8 fsync(40</o/.bulkgen-1-1.part>) = 0",
  '8 link("/o/.bulkgen-1-1.part", "/o/a1.png") = 0',
  "8 fsync(41</o>) = 0",
  '8 write(42</o/index.jsonl>, "..."..., 300) = 300',
];

const without = (pattern: RegExp) =>
  judgeTrace(inOrder.filter((line) => !pattern.test(line)).join("\n")).violations;
const instead = (pattern: RegExp, ...lines: string[]) => replaced(1, pattern, lines);
/** The same on many lanes. */
const amongOthers = (pattern: RegExp, ...lines: string[]) => replaced(16, pattern, lines);
const replaced = (lanes: number, pattern: RegExp, lines: readonly string[]) =>
  judgeTrace(inOrder.flatMap((line) => (pattern.test(line) ? lines : [line])).join("\n"), lanes).violations;

test("an order in which everything is synced in time is found good", () => {
  expect(judgeTrace(inOrder.join("\n"))).toMatchObject({ posts: 1, links: 1, violations: [] });
});

test("P1: a request that leaves before what stands for it is synced is found", () => {
  for (const name of ["state.db-wal", "accounts.db-wal", "receipts.jsonl"]) {
    const late = `P1: paid request 1 left before ${name} was synced`;
    expect(without(new RegExp(`^\\d+ f.*sync\\(\\d+<.*${name}`))).toContain(late);
    expect(instead(/writev/, `7 write(9</x/${name}>, "..."..., 4) = 4`, inOrder[11] ?? "")).toContain(late);
  }
});

test("P1: on many lanes what another item writes may be on its way", () => {
  const [post = ""] = inOrder.filter((line) => line.includes("POST"));
  for (const file of [
    "31</w/.bulkgen/receipts.jsonl>",
    "21</w/.bulkgen/state.db-wal>",
    "22</s/accounts.db-wal>",
  ])
    expect(amongOthers(/writev/, `8 write(${file}, "...", 4) = 4`, post)).toEqual([]);
});

test("P1: on many lanes a request whose own intent is not synced is found, whatever else is", () => {
  const other = (text: string) => text.replace(/one|k1:a+|[0-9a-f]{64}/g, "another");
  for (const [name, pattern] of [
    ["receipts.jsonl", /^8 write\(31/],
    ["state.db-wal", /^7 pwrite64\(21/],
    ["accounts.db-wal", /^7 pwrite64\(22/],
  ] as const) {
    const [line = ""] = inOrder.filter((one) => pattern.test(one));
    expect(amongOthers(pattern, other(line))).toContain(
      `P1: paid request 1 left before its intent was synced in ${name}`,
    );
  }
  expect(amongOthers(/^9 (?:<\.\.\. )?fsync(?:\(31| resumed)/)).toContain(
    "P1: paid request 1 left before its intent was synced in receipts.jsonl",
  );
});

test("a sync covers what was written before it began, and only when it succeeds", () => {
  const late = ["P1: paid request 1 left before receipts.jsonl was synced"];
  const unsafe = ["P1: paid request 1 left before its intent was synced in receipts.jsonl", ...late];
  expect(instead(/^9 <\.\.\. fsync/, "9 <... fsync resumed>) = -1 EIO (Input/output error)")).toEqual(unsafe);
  expect(instead(/^9 <\.\.\. fsync/)).toEqual(unsafe);
  const between = '7 write(31</w/.bulkgen/receipts.jsonl>, "..."..., 4) = 4';
  expect(instead(/^9 <\.\.\. fsync/, between, "9 <... fsync resumed>) = 0")).toEqual(late);
});

test("P4: a file whose name is not on the disk is no memory", () => {
  expect(without(/^9 fsync\(32/)).toEqual([
    "P4: paid request 1 left before the folder of state.db-wal was synced",
    "P4: paid request 1 left before the folder of receipts.jsonl was synced",
  ]);
});

test("P13: a name before its content, and a line before its name, are found", () => {
  expect(without(/^8 fsync\(40/)).toEqual(["P13: /o/a1.png got its name before its content was synced"]);
  expect(without(/^8 fsync\(41/)).toEqual([
    "P13: /o/index.jsonl got a line before the name that it tells of was synced",
  ]);
});

test("a trace that shows nothing is not taken for a good one", () => {
  expect(judgeTrace("").violations).toHaveLength(4);
});
