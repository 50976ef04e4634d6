import type { Model } from "../api/records.js";
import { shortId } from "../core/identity.js";
import type { Draft } from "../core/ports/draft.js";
import { type Problem, partOf } from "../core/problem.js";
import type { Part, Row } from "../manifest/shape/manifest.js";
import { type CheckedRow, checkRow } from "./check-row.js";
import { Choosing } from "./choosing.js";
import { type GoodRow, Items, type Making } from "./items.js";
import { Names } from "./names.js";
import { Notes } from "./notes.js";
import type { PlanInput } from "./plan.js";
import { Prices } from "./prices.js";
import { everything } from "./select.js";
import { Said } from "./wrong-values.js";

const nothing: Making = { items: [], shares: null, problems: [] };

/** Takes a manifest's rows one after the other, checks each and puts it away: nothing of it is held. */
export class Planning {
  readonly prices: Prices;
  readonly items: Items;
  readonly notes = new Notes();
  readonly choosing: Choosing;
  /** Defaults that at least one model of the manifest takes. */
  readonly taken = new Set<string>();
  /** Those that some model does not take. */
  readonly doubted = new Set<string>();
  readonly usedModels = new Set<string>();
  private readonly draft: Draft;
  readonly names = new Names();
  private readonly said = new Said();
  private readonly models: ReadonlyMap<string, Model>;
  /** Why rows of the part at hand are wrong, by row and by combination. */
  private wrong = new Map<string, string>();

  constructor(private readonly input: PlanInput) {
    const { me, origin, edition, draft, duplicates = "keep" } = input;
    this.draft = draft;
    this.models = new Map(input.models.map((model) => [model.model_key, model]));
    this.prices = new Prices(input.charges ?? new Map());
    this.items = new Items(draft, { origin, account: me.user.id, edition, duplicates, prices: this.prices });
    this.choosing = new Choosing(input.selection ?? everything, input.manifest.file);
  }

  async add({ rows, problems }: Part): Promise<void> {
    await this.input.localInputs?.read(rows);
    this.wrong = new Map();
    for (const problem of problems) this.note(problem);
    for (const row of rows) this.row(row);
  }

  private note(problem: Problem): void {
    const part = partOf(problem.place);
    if (!this.wrong.has(part)) this.wrong.set(part, problem.message);
    this.draft.problem(problem);
  }

  private row(row: Row): void {
    const localInputs = this.input.localInputs?.found;
    const { models, said } = this;
    const checked = checkRow(row, { models, localInputs, repair: this.input.repair ?? false, said });
    this.learn(checked);
    const told = this.toldOf(row);
    const { problems, making } = this.making(checked, told !== undefined);
    for (const problem of problems) this.draft.problem(problem);
    const { chosen, lot } = this.choosing.of(checked);
    this.draft.add(
      {
        number: row.number,
        id: row.id,
        repeat: row.repeat,
        cells: row.columns,
        problem: told ?? problems[0]?.message ?? null,
        without: checked.without,
        shares: making.shares,
        chosen,
        lot,
      },
      making.items,
    );
  }

  /** What was found wrong with the row while it was read. */
  private toldOf(row: Row): string | undefined {
    if (this.wrong.size === 0) return undefined;
    return this.wrong.get(partOf({ row: row.number })) ?? this.wrong.get(partOf(row.place));
  }

  /** What is made of a row, and everything that is wrong with it. */
  private making(checked: CheckedRow, told: boolean): { problems: Problem[]; making: Making } {
    const good = isGood(checked) ? checked : null;
    const key = good === null ? null : this.items.keyOf(good, 1);
    const late = good === null || key === null ? null : nameLate(good, key);
    const named = this.names.check(checked.row);
    const wrong = checked.problems.length > 0 || late !== null || named.length > 0;
    if (good === null || key === null || told || wrong)
      return { problems: [...checked.problems, ...(late ? [late] : []), ...named], making: nothing };
    const making = this.items.make(good, key);
    return { problems: making.problems, making };
  }

  private learn(checked: CheckedRow): void {
    const { row, model, without } = checked;
    this.usedModels.add(row.model);
    this.notes.add(checked);
    for (const { key } of without) this.doubted.add(key);
    for (const key of row.defaultParams) {
      if (!this.taken.has(key) && model?.parameters?.some((each) => each.key === key)) this.taken.add(key);
    }
  }
}

function isGood(checked: CheckedRow): checked is GoodRow {
  return checked.model !== null;
}

/** Gives the row the output that depends on its category or its key. */
function nameLate({ row, model }: GoodRow, key: string): Problem | null {
  const named = row.lateName?.({ category: model.category, key: shortId(key) });
  if (named === undefined) return null;
  if (typeof named !== "string") return named;
  row.output = named.trim() || null;
  return null;
}
