import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";

/**
 * Reads what strace saw (`-f -y -s 100000`) and holds it to the order of writes and syncs: what a request or a name
 * stands for must be on the disk first. A file is as durable as the last of its writes that had ended when a sync of it
 * began. Whose intent a write is about is read from its text: the receipt has the request's body, the workspace its hash,
 * and the spend log the item's key.
 */
export interface Order {
  /** Paid requests, writes to files that must be synced before one, and links into the archive. */
  posts: number;
  writes: ReadonlyMap<string, number>;
  links: number;
  violations: string[];
}

const watched = ["state.db", "state.db-wal", "accounts.db", "accounts.db-wal", "receipts.jsonl"];
/** What every run writes: without that the trace shows nothing. */
const expected = ["state.db-wal", "accounts.db-wal", "receipts.jsonl"];

interface FileState {
  started: number;
  ended: number;
  synced: number;
  /** What was written to a watched file, in order. */
  texts: string[];
}

interface Call {
  name: string;
  /** The path behind the first argument's descriptor. */
  path: string;
  text: string;
}

/** With more lanes than one, what others write may rightly be on its way when a request is sent. */
export function judgeTrace(trace: string, lanes = 1): Order {
  const judge = new TraceJudge(lanes);
  const open = new Map<string, Call>();
  for (const line of trace.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    if (/^<\.\.\. \w+ resumed>/.test(rest)) {
      const call = open.get(thread);
      open.delete(thread);
      if (call) judge.end(call, succeeded(rest));
      continue;
    }
    const [, name = "", args = ""] = /^(\w+)\((.*)$/.exec(rest) ?? [];
    if (name === "") continue;
    const call = { name, path: /^\d+<([^>]*)>/.exec(args)?.[1] ?? "", text: args };
    judge.begin(call);
    if (rest.endsWith("<unfinished ...>")) open.set(thread, call);
    else judge.end(call, succeeded(rest));
  }
  return judge.order();
}

function succeeded(rest: string): boolean {
  return !/= -1 E/.test(rest);
}

const writing = /^(write|writev|pwrite64|pwritev2?|sendto|sendmsg)$/;
const syncing = /^(fsync|fdatasync)$/;

class TraceJudge {
  private readonly files = new Map<string, FileState>();
  private readonly folders = new Set<string>();
  /** How far each file had been written when the current sync started. */
  private readonly covers = new Map<Call, number>();
  /** Folders with a name that no sync has made durable yet. */
  private readonly named = new Set<string>();
  private posts = 0;
  private links = 0;
  private readonly violations: string[] = [];

  constructor(private readonly lanes: number) {}

  begin(call: Call): void {
    const { name, path, text } = call;
    if (writing.test(name) && path.startsWith("socket:")) {
      if (text.includes('"POST /api/v1/generate')) this.post(text);
      return;
    }
    const file = this.file(path);
    if (writing.test(name)) {
      if (basename(path) === "index.jsonl") this.indexLine(path);
      file.started++;
      if (watched.includes(basename(path))) file.texts.push(text);
    }
    if (syncing.test(name)) this.covers.set(call, file.ended === file.started ? file.ended : file.synced);
    if (/^link(at)?$/.test(name)) this.link(text);
  }

  end(call: Call, isGood: boolean): void {
    const file = this.file(call.path);
    if (writing.test(call.name)) file.ended++;
    if (!syncing.test(call.name) || !isGood) return;
    file.synced = Math.max(file.synced, this.covers.get(call) ?? 0);
    this.folders.add(call.path);
    this.named.delete(call.path);
  }

  order(): Order {
    const writes = new Map<string, number>();
    for (const [path, { started }] of this.files)
      if (watched.includes(basename(path)) && started > 0)
        writes.set(basename(path), (writes.get(basename(path)) ?? 0) + started);
    const missing = expected
      .filter((name) => !writes.has(name))
      .map((name) => `no write to ${name} was seen`);
    if (this.posts === 0) missing.push("no paid request was seen");
    return { posts: this.posts, writes, links: this.links, violations: [...this.violations, ...missing] };
  }

  private file(path: string): FileState {
    const file = this.files.get(path) ?? { started: 0, ended: 0, synced: 0, texts: [] };
    this.files.set(path, file);
    return file;
  }

  /** The first byte of a paid request: its intent is on the disk, as is every earlier commit of its lane, and their names. */
  private post(text: string): void {
    this.posts++;
    this.checkIntent(text);
    for (const [path, { started, synced }] of this.files) {
      if (!watched.includes(basename(path)) || started === 0) continue;
      if (started > synced && !this.mayBeAnothers(basename(path)))
        this.violations.push(`P1: paid request ${this.posts} left before ${basename(path)} was synced`);
      if (!this.folders.has(dirname(path)))
        this.violations.push(
          `P4: paid request ${this.posts} left before the folder of ${basename(path)} was synced`,
        );
    }
  }

  private mayBeAnothers(name: string): boolean {
    return this.lanes > 1 && expected.includes(name);
  }

  private checkIntent(text: string): void {
    const body = /"(\{.*\})"/.exec(text)?.[1] ?? "no body";
    const sha256 = createHash("sha256").update(body.replaceAll('\\"', '"')).digest("hex");
    const line = (written: string) => written.split("\\n").find((one) => isIntentOf(one, body));
    const [receipt] = this.texts("receipts.jsonl")
      .map(line)
      .filter((one) => one !== undefined);
    const key = /k1:[0-9a-f]{64}/.exec(receipt ?? "")?.[0] ?? "no key";
    this.checkSynced("receipts.jsonl", (written) => line(written) !== undefined);
    this.checkSynced("state.db-wal", (written) => written.includes(sha256));
    this.checkSynced("accounts.db-wal", (written) => written.includes(key));
  }

  private texts(name: string): string[] {
    return this.filesCalled(name).flatMap(({ texts }) => texts);
  }

  private checkSynced(name: string, isIntent: (written: string) => boolean): void {
    const isSafe = this.filesCalled(name).some(({ texts, synced }) => texts.slice(0, synced).some(isIntent));
    if (!isSafe)
      this.violations.push(`P1: paid request ${this.posts} left before its intent was synced in ${name}`);
  }

  private filesCalled(name: string): FileState[] {
    return [...this.files].filter(([path]) => basename(path) === name).map(([, file]) => file);
  }

  /** A file gets its name in the archive. */
  private link(text: string): void {
    const [from, to] = [...text.matchAll(/"([^"]*)"/g)].map(([, path]) => path ?? "");
    if (!/\/\.bulkgen-[^/]*\.part$/.test(from ?? "") || !from || to === undefined) return;
    this.links++;
    const { started, synced } = this.file(from);
    if (started === 0 || started > synced)
      this.violations.push(`P13: ${to} got its name before its content was synced`);
    this.named.add(dirname(to));
  }

  private indexLine(path: string): void {
    if (this.named.has(dirname(path)))
      this.violations.push(`P13: ${path} got a line before the name that it tells of was synced`);
  }
}

function isIntentOf(line: string, body: string): boolean {
  return line.includes('\\"type\\":\\"intent\\"') && line.includes(`\\"request\\":${body}}`);
}
