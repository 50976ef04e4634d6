import { readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { duration } from "../../text/amounts.js";
import { leavesReally } from "../../text/inside.js";
import { nearest } from "../../text/nearest.js";
import { shellWord } from "../../text/shell.js";
import { clientText } from "../client-text.js";
import type { ProviderKind } from "../kind.js";
import { LiquidMistake } from "../liquid.js";
import {
  type Done,
  JobRefused,
  type Mistake,
  type ModelSettings,
  type Provider,
  type ProviderJob,
  type ProviderPlace,
  type ProviderSettings,
} from "../provider.js";
import { type LoadedFile, MissingFiles, NoBrowser, TemplateBrowser } from "./browser.js";
import { formatFor, type Size, settingParams, sideMax, sizeFor } from "./size.js";
import { awayInHtml, fileInSvg, readTemplate, TemplateMistake, type TemplateSource } from "./source.js";
import { drawnSvg } from "./svg.js";

/** What a model of a template says. */
type TemplateModel = { template: string } & Partial<Size>;

/** What every template can use besides the params. */
const ownNames = ["prompt", "image", "width", "height"];

const px = `expected a whole number of px from 1 to ${sideMax}`;
const side = z.int(px).min(1, px).max(sideMax, px).optional();

export const templateKind: ProviderKind = {
  name: "template",
  describe: "HTML and SVG files of this machine, as PNG, JPEG, WebP or PDF",
  provider: {
    browser: z.string("expected the path of Chromium or Chrome").min(1).optional(),
    sandbox: z.boolean("expected true or false").optional(),
  },
  model: {
    template: z.string("expected a file .html or .svg").min(1, "expected a file .html or .svg"),
    width: side,
    height: side,
  },
  defaults: { addresses: [], concurrency: 2, timeoutMs: 60_000 },
  needsKey: false,
  check: ({ details, input }, folder, params) =>
    templateMistakes(details as TemplateModel, input, folder, params),
  reach({ name, details: { browser, sandbox } }, { key, details }, folder) {
    const path = resolve(folder, (details as TemplateModel).template);
    return {
      values: [
        ...(typeof browser === "string"
          ? [{ setting: `browser of provider ${name}`, value: shellWord(browser) }]
          : []),
        ...(sandbox === false ? [{ setting: `sandbox of provider ${name}`, value: "false" }] : []),
        ...(leavesReally(folder, path) ? [{ setting: `template of model ${key}`, value: path }] : []),
      ],
    };
  },
  open: (settings, place) => new Templates(settings, place),
};

function templateMistakes(
  model: TemplateModel,
  input: ModelSettings["input"],
  folder: string,
  params: readonly string[],
): Mistake[] {
  let source: TemplateSource;
  try {
    source = readTemplate(folder, model.template);
  } catch (error) {
    if (error instanceof LiquidMistake)
      return [{ path: ["template"], message: `${model.template}, ${error.message}` }];
    if (error instanceof TemplateMistake) return [{ path: ["template"], message: error.message }];
    throw error;
  }
  const { kind, text, liquid } = source;
  const known = [...ownNames, ...params];
  const settings: readonly string[] = settingParams;
  const hasSize =
    params.includes("size") || ["width", "height"].every((name) => params.includes(name) || name in model);
  const file = kind === "svg" ? fileInSvg(text) : null;
  const mistakes = [
    ...params
      .filter((name) => name === "prompt" || name === "image")
      .map((name) => ({
        path: ["params", name],
        message: `${name} is a name that every template has: choose another`,
      })),
    ...liquid.names
      .filter((name) => !known.includes(name))
      .map((name) => ({ path: ["template"], message: unknownName(model.template, name, known) })),
    ...params
      .filter((name) => !settings.includes(name) && !liquid.names.includes(name))
      .map((name) => ({ path: ["params", name], message: `${model.template} does not use {{ ${name} }}` })),
  ];
  if (kind === "html" && !hasSize)
    mistakes.push({
      path: ["template"],
      message:
        "an HTML template needs a size: a param size such as [1200x628, 1080x1080], or width and height of the model",
    });
  const away = kind === "html" ? awayInHtml(text) : null;
  if (away !== null)
    mistakes.push({
      path: ["template"],
      message: `${model.template} refers to ${away}, but templates are shown without a network and without other folders: save the file beside the template, and write its name`,
    });
  if (file !== null)
    mistakes.push({
      path: ["template"],
      message: `${model.template} refers to ${file}, but an SVG is drawn without other files: embed it as data:, or use an HTML template`,
    });
  if (input === "video")
    mistakes.push({ path: ["input"], message: "a template takes text and pictures, but no video" });
  if (["image", "text+image"].includes(input) && !liquid.names.includes("image"))
    mistakes.push({
      path: ["template"],
      message: `${model.template} does not use {{ image }}, which the model takes as input`,
    });
  return mistakes;
}

function unknownName(template: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const hint = meant === undefined ? `There are ${known.join(", ")}` : `Did you mean {{ ${meant} }}?`;
  return `${template} uses {{ ${name} }}, which is no param of this model. ${hint}`;
}

/** Jobs that fill in a template. The same values make the same picture. */
class Templates implements Provider {
  readonly repeatable = "yes";
  private readonly browser: TemplateBrowser;
  private readonly timeoutMs: number;

  constructor(
    { details, timeoutMs }: ProviderSettings,
    private readonly place: ProviderPlace,
  ) {
    const { browser = null, sandbox = process.getuid?.() !== 0 } = details as {
      browser?: string;
      sandbox?: boolean;
    };
    this.timeoutMs = timeoutMs;
    this.browser = new TemplateBrowser({ program: browser, isSandboxed: sandbox, timeoutMs }, place);
  }

  async submit(job: ProviderJob, signal: AbortSignal): Promise<Done> {
    signal.throwIfAborted();
    const model = job.model.details as unknown as TemplateModel;
    const source = this.source(model.template);
    const size = sizeFor(job.params, model);
    const format = formatFor(job.params);
    const values = { ...job.params, ...size, prompt: job.prompt, image: await imageFor(job, source.kind) };
    const text = filledWith(source, values);
    if (source.kind === "svg") return { outputs: [{ bytes: await drawnSvg(text, size, format) }] };
    if (size === null)
      throw new JobRefused(
        "parameter",
        "nothing says which size the picture has: expected a param size",
        false,
      );
    const file = (path: string) => fileFor(path, source.path, job);
    const bytes = await this.shown({ html: text, size, format, file }, signal);
    return { outputs: [{ bytes: format === "webp" ? await asWebp(bytes) : bytes }] };
  }

  async check(_: AbortSignal, models: readonly ModelSettings[]): Promise<string | null> {
    try {
      const sources = models.map(({ details }) =>
        this.source((details as unknown as TemplateModel).template),
      );
      if (sources.some(({ kind }) => kind === "html")) await this.browser.start();
      return null;
    } catch (error) {
      if (error instanceof JobRefused || error instanceof NoBrowser) return error.message;
      throw error;
    }
  }

  close(): Promise<void> {
    return this.browser.close();
  }

  private source(name: string): TemplateSource {
    try {
      return readTemplate(this.place.folder, name);
    } catch (error) {
      throw new JobRefused("provider", clientText((error as Error).message), false);
    }
  }

  private async shown(
    page: Parameters<TemplateBrowser["shown"]>[0],
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    try {
      return await this.browser.shown(page, signal);
    } catch (error) {
      if (error instanceof MissingFiles || error instanceof NoBrowser)
        throw new JobRefused("provider", clientText(error.message), false);
      if ((error as Error).name === "TimeoutError")
        throw new JobRefused("provider", `the page was not ready after ${duration(this.timeoutMs)}`, false);
      throw error;
    }
  }
}

function filledWith({ liquid }: TemplateSource, values: Readonly<Record<string, unknown>>): string {
  try {
    return liquid.filled(values);
  } catch (error) {
    throw new JobRefused(
      "provider",
      clientText(`the template cannot be filled in: ${(error as Error).message}`),
      false,
    );
  }
}

/** Where a page finds its input; no file of the template's folder is found there. */
const imagePath = "/.input/image";

/** What stands for the input in `<img src>`. An SVG has it inside. */
async function imageFor({ media }: ProviderJob, kind: TemplateSource["kind"]): Promise<string | undefined> {
  const { image } = media;
  if (image === undefined || kind === "html") return image && imagePath;
  return `data:${image.type};base64,${(await readFile(image.path)).toString("base64")}`;
}

/** Files of the template's folder, except hidden ones such as `.env`, and the job's input. */
async function fileFor(path: string, template: string, { media }: ProviderJob): Promise<LoadedFile | null> {
  if (path === imagePath)
    return media.image === undefined ? null : { path: media.image.path, type: media.image.type };
  const parts = path.split("/").slice(1);
  if (parts.some((part) => part === "" || part.startsWith(".") || /[\\\0]/.test(part))) return null;
  const folder = dirname(template);
  const found = join(folder, ...parts);
  const isFile = await stat(found).then(
    (facts) => facts.isFile(),
    () => false,
  );
  return isFile && !leavesReally(folder, found) ? { path: found, type: null } : null;
}

async function asWebp(png: Uint8Array): Promise<Uint8Array> {
  const { default: sharp } = await import("sharp");
  return sharp(png).webp({ quality: 92 }).toBuffer();
}
