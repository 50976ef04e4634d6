import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, run, started } from "./command.js";

/** `bulkgen sandbox` running in this process. */
export interface SandboxProcess {
  url: string;
  key: string;
  /** Makes another key, of its own user or of another one, who is made too when new; returns its environment. */
  keyOf(name: string, user?: string): Promise<Record<string, string>>;
  /** The environment by which a command finds it. */
  env: Record<string, string>;
  /** Ends it and returns what it has on record: every task that was made, and for what. */
  tasks(): Promise<MadeTask[]>;
  /** The same while it runs. */
  madeSoFar(): MadeTask[];
}

export interface MadeTask {
  id: string;
  prompt: string;
  credits: number;
  outcome: string | null;
  /** UTC ms. */
  at: number;
}

export async function startSandbox(...flags: string[]): Promise<SandboxProcess> {
  const place = newPlace();
  const file = join(place.folder, "service.db");
  const always = ["--json", "--state", file, "--plan", "Enterprise", "--task-ms", "100-300"];
  const running = started(place, ["sandbox", ...always, ...flags], { serves: true });
  const [line] = await running.prints(/^\{.*\}\n/);
  const { url, key } = JSON.parse(line) as { url: string; key: string };
  return {
    url,
    key,
    env: { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key },
    keyOf: (name, user) => makeKey(place, ["--state", file], url, name, user),
    madeSoFar: () => tasksIn(file),
    async tasks() {
      running.interrupt();
      await running.ended;
      return tasksIn(file);
    },
  };
}

async function makeKey(
  place: Place,
  state: readonly string[],
  url: string,
  name: string,
  user: string | undefined,
): Promise<Record<string, string>> {
  const whose = user === undefined ? [] : ["--user", user];
  if (user !== undefined)
    await run(place, ["sandbox", "account", "--create", user, "--plan", "Enterprise", ...state]);
  const made = await run(place, ["sandbox", "keys", "create", name, "--json", ...whose, ...state]);
  const { key } = JSON.parse(made.stdout) as { key: string };
  return { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key };
}

interface TaskRow {
  id: string;
  input: string;
  cost_micro: number;
  outcome: string | null;
  created_at: number;
}

function tasksIn(file: string): MadeTask[] {
  const db = openSqlite(file, { readonly: true });
  try {
    const rows = db
      .prepare("SELECT id, input, cost_micro, outcome, created_at FROM tasks ORDER BY created_at")
      .all();
    return (rows as TaskRow[]).map(({ id, input, cost_micro, outcome, created_at }) => ({
      id,
      prompt: (JSON.parse(input) as { prompt: string }).prompt,
      credits: cost_micro / 1e6,
      outcome,
      at: created_at,
    }));
  } finally {
    db.close();
  }
}
