import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Gateway } from "../../../src/sandbox/faults/gateway.js";
import { FaultScript, faultPlan } from "../../../src/sandbox/faults/plan.js";
import { Sandbox, type SandboxOptions } from "../../../src/sandbox/sandbox.js";
import { serveSandbox } from "../../../src/sandbox/serve.js";
import { written } from "../../../src/service/answers/reply.js";
import { httpApp } from "../../../src/service/http/http.js";
import { SqliteState } from "../../../src/service/state/sqlite-state.js";
import { keyHash, toMicro } from "../../../src/service/state/state.js";
import type { SwitchSettings } from "../../../src/service/state/switches.js";
import { systemClock } from "../../../src/system.js";
import { InProcess } from "../in-process.js";
import { CountingRandom, ManualClock } from "../manual-clock.js";
import type { Answer, Call, Hands, Subject } from "./subject.js";

const file = "https://example.invalid/input";

const keys = {
  key: `svc_${"A".repeat(32)}`,
  secondKey: `svc_${"D".repeat(32)}`,
  strangersKey: `svc_${"B".repeat(32)}`,
  revokedKey: `svc_${"C".repeat(32)}`,
};
const ada = "11111111-1111-4111-8111-111111111111";
const stranger = "22222222-2222-4222-8222-222222222222";

/** The world itself, without HTTP. */
export async function worldInProcess(switches: SwitchSettings = {}): Promise<Subject> {
  const inside = new InProcess({ switches });
  const hands = furnished(inside.state, inside.clock);
  return {
    key: keys.key,
    hands,
    send: async (call) => {
      const body = call.body ?? null;
      const answer = inside.send(call.method, call.path, { headers: call.headers, body });
      const reply = written(answer);
      return read(reply.status, Object.entries(reply.headers), reply.body);
    },
    wait: async (ms) => inside.clock.advance(ms),
    close: async () => inside.state.close(),
  };
}

/** A served sandbox, by HTTP over a socket. */
export async function onASocket(): Promise<Subject> {
  return withFile(async (options, hands, clock) => {
    const sandbox = await serveSandbox(options);
    return { ...byHttp(sandbox.url, hands, clock), close: () => sandbox.close() };
  });
}

/** A real service by its address and a key. */
export async function realService(baseUrl: string, key: string): Promise<Subject> {
  const base = baseUrl.replace(/\/+$/, "");
  return {
    key,
    send: (call) => overHttp(fetch, base, call),
    wait: (ms) => systemClock.sleep(ms),
    download: (url) => statusOf(fetch, url),
    close: async () => {},
  };
}

/** The sandbox's HTTP application called without a socket, for what needs many requests. */
export async function appInProcess(more: Partial<SandboxOptions> = {}): Promise<Subject> {
  return withFile(async (options, hands, clock) => {
    const sandbox = new Sandbox({ ...options, ...more }, () => "http://127.0.0.1");
    const script = new FaultScript(faultPlan.parse(more.faults ?? {}));
    const app = httpApp(new Gateway(sandbox, script, clock));
    const ask = (url: string, init: RequestInit) => Promise.resolve(app.request(url, init));
    return {
      key: keys.key,
      hands,
      send: (call) => overHttp(ask, "http://127.0.0.1", call),
      wait: async (ms) => clock.advance(ms),
      close: () => sandbox.close(),
    };
  });
}

type Ask = (url: string, init: RequestInit) => Promise<Response>;

/** A service in our hands at an address. */
export function byHttp(base: string, hands: Hands, clock: { advance(ms: number): void }) {
  return {
    key: keys.key,
    url: base,
    hands,
    send: (call: Call) => overHttp(fetch, base, call),
    wait: async (ms: number) => clock.advance(ms),
    download: (url: string) => statusOf(fetch, url),
  };
}

async function withFile(
  open: (options: SandboxOptions, hands: Hands, clock: ManualClock) => Promise<Subject>,
): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-suite-"));
  const file = join(folder, "state.db");
  const clock = new ManualClock();
  const state = new SqliteState(file);
  const hands = furnished(state, clock);
  const taskMs = { min: 1_000, max: 1_000 };
  const subject = await open({ clock, random: new CountingRandom(), file, taskMs }, hands, clock);
  const close = async () => {
    await subject.close();
    state.close();
    rmSync(folder, { recursive: true });
  };
  return { ...subject, close };
}

/** Two users: one with two good keys and a revoked one, and a stranger. */
export function furnished(state: SqliteState, clock: { now(): number }): Hands {
  for (const [id, email] of [
    [ada, "ada@example.com"],
    [stranger, "stranger@example.com"],
  ] as const) {
    state.saveAccount({
      id,
      email,
      name: id === ada ? "Ada" : null,
      balanceMicro: toMicro(100),
      plan: "Enterprise",
      subscriptionStatus: "active",
      creditsPerMonth: 100,
      billingInterval: "year",
      periodEnd: clock.now() + 1e9,
      cancelAtPeriodEnd: false,
      admitted: 0,
    });
  }
  const owners = { key: ada, secondKey: ada, revokedKey: ada, strangersKey: stranger };
  for (const [name, accountId] of Object.entries(owners)) {
    const hash = keyHash(keys[name as keyof typeof keys]);
    state.saveKey({ id: name, accountId, hash, name, createdAt: clock.now() });
  }
  state.db.prepare("update keys set revoked_at = 1 where id = 'revokedKey'").run();
  return {
    state,
    accountId: ada,
    ...keys,
    failing: ["A fox [[moderation]]", "A fox [[provider-error]]"],
    inputs: { image_url: `${file}.png`, video_url: `${file}.mp4`, audio_url: `${file}.mp3` },
  };
}

async function overHttp(ask: Ask, base: string, call: Call): Promise<Answer> {
  const { method, headers, body } = call;
  const response = await ask(base + call.path, { method, headers, ...(body === undefined ? {} : { body }) });
  return read(response.status, response.headers, await response.text());
}

async function statusOf(ask: Ask, url: string): Promise<number> {
  const response = await ask(url, {});
  await response.arrayBuffer();
  return response.status;
}

function read(status: number, headers: Iterable<readonly [string, string]>, text: string): Answer {
  const lower = [...headers].map(([name, value]) => [name.toLowerCase(), value]);
  return { status, headers: Object.fromEntries(lower), body: parsed(text) };
}

function parsed(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
