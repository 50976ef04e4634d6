import { resolve } from "node:path";
import { z } from "zod";
import { packageFile } from "../../package-file.js";
import { nearest } from "../../text/nearest.js";
import type { ProviderKind, Reach } from "../kind.js";
import type { Json, Mistake, ModelSettings, ProviderSettings } from "../provider.js";
import {
  type Description,
  describedModel,
  hosts,
  httpModel,
  msOf,
  readDescription,
  readModel,
} from "./description.js";
import { HttpProvider } from "./http-provider.js";
import { originsIn } from "./origins.js";
import { namesIn, namesWithin } from "./template.js";

/** The kinds whose providers are described as data: those that are shipped, and `http`, which users describe themselves. */
export const httpKinds: readonly ProviderKind[] = [
  ...["openai", "fal", "replicate", "gemini", "elevenlabs"].map(shippedKind),
  {
    name: "http",
    describe: "any HTTP API, described in the models file",
    provider: {
      description: z.string({ error: "must be the path of a description (YAML)" }).optional(),
      hosts,
    },
    model: httpModel,
    defaults: { addresses: [] },
    needsKey: false,
    check(model, folder, params, provider) {
      const base = described(provider, folder);
      if (typeof base === "string") return [{ path: [], message: base }];
      const isComplete = model.details["submit"] !== undefined || base.submit.length > 0;
      return [
        ...(isComplete ? [] : [{ path: [], message: "needs `submit`: what is sent where" }]),
        ...mistakesIn(model, base, params),
      ];
    },
    reach(settings, model, folder) {
      const base = described(settings, folder);
      return reachOf(settings, model, typeof base === "string" ? null : base);
    },
    open(settings, place) {
      const base = described(settings, place.folder);
      if (typeof base === "string") throw new Error(base);
      const addresses = settings.addresses.length > 0 ? settings.addresses : addressesOf(base);
      const needsKey = needsItsKey(base) || settings.keyEnv !== null || settings.keyFile !== null;
      return new HttpProvider({ ...settings, addresses }, place, base, needsKey);
    },
  },
];

function shippedKind(name: string): ProviderKind {
  const base = readDescription(shippedFile(name));
  const { describe, key_env, concurrency, timeout } = base;
  const needsKey = needsItsKey(base);
  return {
    name,
    describe,
    provider: { hosts },
    model: describedModel,
    defaults: {
      addresses: addressesOf(base),
      ...(key_env === undefined ? {} : { keyEnv: key_env }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(timeout === undefined ? {} : { timeoutMs: msOf(timeout) }),
    },
    needsKey,
    check: (model, _, params) => mistakesIn(model, base, params),
    reach: (settings, model) => reachOf(settings, model, null),
    open: (settings, place) => new HttpProvider(settings, place, base, needsKey),
  };
}

/** Where requests of a model may go, by the file and by a description of the user's; a shipped one adds nothing of its own. */
function reachOf({ details }: ProviderSettings, model: ModelSettings, own: Description | null): Reach {
  const { describe: _, ...parts } = own ?? { describe: "" };
  const named = [details["hosts"] ?? [], own?.hosts ?? []].flat().map(String);
  return { addresses: [...originsIn(parts), ...originsIn(model.details), ...named] };
}

function needsItsKey({ key_env, needs_key = key_env !== undefined }: Description): boolean {
  return needs_key;
}

function shippedFile(name: string): string {
  return packageFile(`src/providers/descriptions/${name}.yaml`);
}

function addressesOf({ base_url }: Description): string[] {
  return base_url === undefined ? [] : [base_url.replace(/\/+$/, "")];
}

/** The description that a provider of `kind: http` names: a file, or one of the shipped ones by its bare name. */
function described(provider: ProviderSettings, folder: string): Description | string {
  const named = provider.details["description"];
  if (typeof named !== "string") return { describe: "", headers: {}, endpoint: [], submit: [] };
  try {
    return readDescription(/^\w+$/.test(named) ? shippedFile(named) : resolve(folder, named));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT"
        ? "there is no such file"
        : code === undefined
          ? message
          : `it cannot be read (${code})`;
    return `the description ${named} of the provider ${provider.name} cannot be used: ${why}`;
  }
}

const jobNames = ["prompt", "id", "category"].concat(
  ["image", "video", "audio"].flatMap((name) => [name, `${name}_base64`, `${name}_type`]),
);

function mistakesIn(model: ModelSettings, base: Description, params: readonly string[]): Mistake[] {
  const { request, submit, poll } = readModel(model.details);
  const fields = Object.keys(request ?? {});
  const known = [...jobNames, ...params];
  const { needs = base.endpoint } = base;
  const isMissing = needs.length > 0 && !needs.some((name) => fields.includes(name));
  return [
    ...(isMissing ? [{ path: ["request"], message: `needs ${listed(needs)}` }] : []),
    ...unknownNames(request, ["request"], known),
    ...unknownNames(submit?.post, ["submit", "post"], [...known, ...base.endpoint]),
    ...unknownNames(submit?.headers, ["submit", "headers"], [...known, "key"]),
    ...unknownNames(submit?.body, ["submit", "body"], known),
    ...unknownNames(submit?.form, ["submit", "form"], known),
    ...unknownNames(poll?.get, ["poll", "get"], [...known, ...base.endpoint, "ref"]),
  ];
}

function listed(names: readonly string[]): string {
  const marked = names.map((name) => `\`${name}\``);
  return marked.length < 2 ? marked.join() : `${marked.slice(0, -1).join(", ")} or ${marked.at(-1)}`;
}

/** The places of a value whose templates name what no request has. */
function unknownNames(value: Json | undefined, path: Mistake["path"], known: readonly string[]): Mistake[] {
  if (typeof value === "object" && value !== null) {
    const { from } = value as { from?: Json };
    const isMap = !Array.isArray(value) && typeof from === "string" && namesWithin(value).includes(from);
    if (isMap) return wrongNames([from], [...path, "from"], known);
    return Object.entries(value).flatMap(([name, one]) =>
      unknownNames(one, [...path, Array.isArray(value) ? Number(name) : name], known),
    );
  }
  return typeof value === "string" ? wrongNames(namesIn(value), path, known) : [];
}

function wrongNames(names: readonly string[], path: Mistake["path"], known: readonly string[]): Mistake[] {
  return names
    .filter((name) => !known.includes(name))
    .map((name) => {
      const meant = nearest(name, known);
      const hint =
        meant === undefined ? "it may be prompt, an input or a parameter" : `did you mean ${meant}?`;
      return { path, message: `names \`${name}\`, which a request of this model does not have; ${hint}` };
    });
}
