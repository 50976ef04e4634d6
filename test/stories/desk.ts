import { cpSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.js";
import { Files } from "./files.js";
import { type Row, Sheets } from "./sheets.js";

/** What a plan says, as far as stories read it. */
export interface Planned {
  job: string;
  edition: string;
  money: { needed: number; inDoubt: number };
  missing: { rowId: string }[];
  states: Partial<Record<string, number>>;
}

/** A paid request, as the receipts of a folder have it. */
export interface Intent {
  job: string;
  prompt: string;
}

/** A folder of a person's, with sheets and a workspace, and what has become of it. */
export class Desk {
  folder: string;
  readonly sheets: Sheets;
  readonly files = new Files(() => this.folder);
  saved: { plan: Planned; rows: Row[] } | null = null;
  /** The address of the database that has the state, if it is not in files, and of the last one that had it. */
  database: string | null = null;
  lastDatabase: string | null = null;
  stateWasLost = false;
  hasTwoFolders = false;
  hasBucketAlone = false;
  hasHarmed = false;
  hasRejected = false;
  hasAdopted = false;
  hasTwoUsers = false;
  /** No run has a higher number. */
  runsMax = 0;
  /** How many lines of its receipts were read. */
  private receiptsRead = 0;
  /** The sheets that were run for each job. */
  private readonly sheetsOf = new Map<string, Set<string>>();

  constructor(
    private readonly home: string,
    newId: () => string,
  ) {
    this.folder = home;
    this.sheets = new Sheets(() => this.folder, newId);
  }

  ran(job: string, sheet: string): void {
    this.sheetsOf.set(job, (this.sheetsOf.get(job) ?? new Set()).add(sheet));
  }

  /** Those that were run. */
  jobs(): string[] {
    return [...this.sheetsOf.keys()];
  }

  hasTwoSheets(job: string): boolean {
    return (this.sheetsOf.get(job)?.size ?? 0) > 1;
  }

  /** The paid requests of this folder since the last time. */
  newIntents(): Intent[] {
    const path = join(this.state, "receipts.jsonl");
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const lines = text.split("\n").filter((line) => line !== "");
    const since = this.receiptsRead;
    this.receiptsRead = lines.length;
    return lines
      .slice(since)
      .map((line) => JSON.parse(line) as { type: string; job: string; request: { prompt: string } })
      .filter(({ type }) => type === "intent")
      .map(({ job, request }) => ({ job, prompt: request.prompt }));
  }

  /** The whole folder gets another name. */
  moves(): void {
    const to = this.folder === this.home ? `${this.folder} and there` : this.home;
    renameSync(this.folder, to);
    this.folder = to;
  }

  losesState(): void {
    if (this.hasTwoFolders) return;
    this.stateWasLost ||= this.database === null;
    rmSync(this.state, { recursive: true, force: true });
  }

  backsUp(): void {
    copy(this.state, this.backup);
    copy(this.outputs, `${this.backup} of outputs`);
  }

  /** Whether there is a copy. */
  get hasBackup(): boolean {
    return existsSync(this.backup);
  }

  restores(isWhole: boolean): void {
    this.stateWasLost ||= this.hasBackup;
    copy(this.backup, this.state);
    if (!isWhole || !this.hasBackup) return;
    rmSync(this.outputs, { recursive: true, force: true });
    copy(`${this.backup} of outputs`, this.outputs);
  }

  /** The runs were begun on a machine of another name: the folder is on this one now. */
  comesFromElsewhere(): void {
    if (this.database !== null || !existsSync(join(this.state, "state.db"))) return;
    const db = openSqlite(join(this.state, "state.db"));
    db.exec(
      "UPDATE runs SET options = json_set(options, '$.beganBy.host', 'another machine') WHERE json_extract(options, '$.beganBy') IS NOT NULL",
    );
    db.close();
  }

  private get outputs(): string {
    return join(this.folder, "outputs");
  }

  private get state(): string {
    return join(this.folder, ".bulkgen");
  }

  private get backup(): string {
    return join(this.folder, "backup");
  }
}

function copy(from: string, to: string): void {
  if (!existsSync(from)) return;
  rmSync(to, { recursive: true, force: true });
  cpSync(from, to, { recursive: true });
}
