import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { httpKinds } from "../../src/providers/http/kinds.js";
import type { ProviderKind } from "../../src/providers/kind.js";
import {
  type Done,
  JobLater,
  JobRefused,
  type Json,
  type JsonObject,
  type MediaFile,
  type ModelSettings,
  type Provider,
  type ProviderJob,
  type ProviderSettings,
} from "../../src/providers/provider.js";
import { ManualClock } from "../manual-clock.js";
import { BflUpstream } from "../upstreams/bfl.js";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { FalUpstream } from "../upstreams/fal.js";
import { GeminiUpstream } from "../upstreams/gemini.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import type { Upstream } from "../upstreams/upstream.js";

export interface Vendor {
  kind: string;
  /** Below the stand-in's address. */
  base: string;
  make(): Upstream & { key: string };
  category: ModelSettings["category"];
  request: JsonObject;
  details?: JsonObject;
  /** Whether the answer to a submit is the result. */
  isAtOnce: boolean;
}

export const vendors = {
  openai: {
    kind: "openai",
    base: "/v1",
    make: () => new OpenAiUpstream(),
    category: "image",
    request: { model: "gpt-image-2" },
    isAtOnce: true,
  },
  fal: {
    kind: "fal",
    base: "",
    make: () => new FalUpstream(),
    category: "image",
    request: { path: "fal-ai/flux/dev" },
    isAtOnce: false,
  },
  replicate: {
    kind: "replicate",
    base: "",
    make: () => new ReplicateUpstream(),
    category: "image",
    request: { model: "black-forest-labs/flux-dev" },
    isAtOnce: false,
  },
  gemini: {
    kind: "gemini",
    base: "",
    make: () => new GeminiUpstream(),
    category: "image",
    request: { model: "gemini-3-pro-image" },
    isAtOnce: true,
  },
  elevenlabs: {
    kind: "elevenlabs",
    base: "",
    make: () => new ElevenLabsUpstream(),
    category: "audio",
    request: { voice_id: "rachel", model_id: "eleven_v3" },
    isAtOnce: true,
  },
  bfl: {
    kind: "http",
    base: "",
    make: () => new BflUpstream(),
    category: "image",
    request: { path: "flux-2-pro" },
    details: { description: "bfl", hosts: ["127.0.0.1"] },
    isAtOnce: false,
  },
} as const satisfies Record<string, Vendor>;

export function kindNamed(name: string): ProviderKind {
  const kind = httpKinds.find((one) => one.name === name);
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return kind;
}

export function settingsOf(kind: string, over: Partial<ProviderSettings> = {}): ProviderSettings {
  const { defaults } = kindNamed(kind);
  return {
    name: "studio",
    kind,
    addresses: defaults.addresses ?? [],
    keyEnv: defaults.keyEnv ?? null,
    keyFile: null,
    headers: {},
    concurrency: 4,
    perMinute: null,
    timeoutMs: 180_000,
    waiting: 100,
    details: {},
    ...over,
  };
}

export interface Opened {
  provider: Provider;
  clock: ManualClock;
}

export function openKind(
  kind: string,
  { key, folder = "/", ...over }: Partial<ProviderSettings> & { key: string | null; folder?: string },
): Opened {
  const clock = new ManualClock();
  const provider = kindNamed(kind).open(settingsOf(kind, over), {
    clock,
    random: { next: () => 0, uuid: () => "" },
    folder,
    key: () => key,
    env: {},
  });
  return { provider, clock };
}

export function openVendor(
  vendor: Vendor,
  upstream: Upstream & { key: string },
  key: string | null = upstream.key,
): Opened {
  return openKind(vendor.kind, {
    key,
    addresses: [upstream.url + vendor.base],
    details: vendor.details ?? {},
  });
}

let count = 0;

export function jobOf(
  vendor: Pick<Vendor, "category" | "request">,
  prompt: string,
  more: Partial<Pick<ProviderJob, "params" | "media" | "folder">> & { details?: JsonObject } = {},
): ProviderJob {
  count += 1;
  const { details = {}, ...others } = more;
  return {
    id: `00000000-0000-4000-8000-${String(count).padStart(12, "0")}`,
    model: {
      key: "model",
      name: "Model",
      category: vendor.category,
      input: "text",
      details: { request: vendor.request, ...details },
    },
    prompt,
    params: {},
    media: {},
    folder: "/nowhere",
    ...others,
  };
}

/** A picture on this disk. */
export function pictureIn(folder: string, address: string | null = null): MediaFile & { bytes: Buffer } {
  const bytes = Buffer.from("a picture, or as good as one");
  const path = join(folder, "input.png");
  writeFileSync(path, bytes);
  return { path, type: "image/png", address, bytes };
}

export type Outcome =
  | "done"
  | "accepted"
  | "running"
  | "unknown"
  | `refused: ${JobRefused["kind"]}`
  | `later: ${JobLater["scope"]}`;

/** What a promise of a provider comes to; what is thrown otherwise is an unknown outcome. */
export async function outcomeOf(promise: Promise<object>): Promise<{
  outcome: Outcome;
  message: string;
  error?: Error;
  value: Partial<Done> & { ref?: string; resume?: Json; afterMs?: number; note?: string };
}> {
  try {
    const value = (await promise) as Partial<Done> & { running?: true };
    return {
      outcome: "outputs" in value ? "done" : "running" in value ? "running" : "accepted",
      message: "",
      value,
    };
  } catch (thrown) {
    const error = thrown as Error;
    const outcome: Outcome =
      error instanceof JobRefused
        ? `refused: ${error.kind}`
        : error instanceof JobLater
          ? `later: ${error.scope}`
          : "unknown";
    return { outcome, message: error.message, error, value: {} };
  }
}

export const never = new AbortController().signal;

/** Polls until the job has ended, and answers with what it came to. */
export async function finished(provider: Provider, job: ProviderJob) {
  const submitted = await provider.submit(job, never);
  if (!("resume" in submitted)) return submitted;
  for (;;) {
    // As after a restart: all that is known was written down.
    const resume = JSON.parse(JSON.stringify(submitted.resume)) as Json;
    const polled = await provider.poll!(resume, never);
    if (!("running" in polled)) return polled;
  }
}
