import { type Credits, inCredits, noCredits, plus, times } from "../core/money.js";
import type { Row } from "../manifest/shape/manifest.js";
import type { Duplicates, Finding } from "./plan.js";

/** Groups that are listed one by one; more are probably intended. */
const groupsMax = 100;
const numbersKept = 1_000;

/** A row with a request that an earlier row has already. */
interface Repetition {
  price: Credits;
  row: Pick<Row, "number" | "repeat">;
  /** The number of the first row with this request. */
  first: number;
}

interface Group {
  price: Credits;
  /** Different row numbers, up to a maximum, and how many there are. */
  numbers: number[];
  rows: number;
  distinct: number;
  copies: number;
}

/** Groups of the same rows: those of a job with steps are identical in each step. */
interface SameRows extends Omit<Group, "price"> {
  groups: number;
  cost: Credits;
}

/** Counts the rows that ask for the same as an earlier one, for what a plan says about them. */
export class RepeatedRequests {
  /** By the position of the first item. */
  private readonly groupAt = new Map<number, Group>();
  private readonly more = { groups: 0, credits: noCredits };

  /** Counts a row; `isSecond`: no row was counted for this first item before. */
  count(head: number, isSecond: boolean, { row, price, first }: Repetition): void {
    if (isSecond) this.begin(head, price, first);
    const group = this.groupAt.get(head);
    if (group === undefined) this.more.credits = plus(this.more.credits, times(price, row.repeat));
    else {
      group.rows++;
      group.copies += row.repeat;
      if (group.numbers.at(-1) === row.number) return;
      group.distinct++;
      if (group.numbers.length < numbersKept) group.numbers.push(row.number);
    }
  }

  private begin(head: number, price: Credits, number: number): void {
    if (this.groupAt.size >= groupsMax) this.more.groups++;
    else this.groupAt.set(head, { price, numbers: [number], rows: 1, distinct: 1, copies: 0 });
  }

  /** One for each group. If not all rows are selected, `wantedIn` says how many items of a group are. */
  findings(duplicates: Duplicates, wantedIn: ((head: number) => number) | null): Finding[] {
    if (duplicates === "error") return [];
    /** Identical rows of a job with steps are identical in each step: they get one line. */
    const byRows = new Map<string, SameRows>();
    for (const [head, { price, ...group }] of this.groupAt) {
      const wanted = wantedIn?.(head) ?? Number.POSITIVE_INFINITY;
      if (wanted <= (duplicates === "merge" ? 0 : 1)) continue;
      const copies = duplicates === "merge" ? group.copies : Math.min(group.copies, wanted - 1);
      const same = `${group.rows} ${group.numbers.join()}`;
      const known = byRows.get(same) ?? { ...group, groups: 0, copies: 0, cost: noCredits };
      known.groups++;
      known.copies += copies;
      known.cost = plus(known.cost, times(price, copies));
      byRows.set(same, known);
    }
    const findings = [...byRows.values()].map((each) => identicalRows(each, duplicates));
    const { groups, credits: cost } = this.more;
    if (groups === 0) return findings;
    const each =
      duplicates === "merge"
        ? "their rows share the same items"
        : cost === noCredits
          ? "each row is made"
          : `${inCredits(cost)} more than once`;
    const message = `${groups} more groups of identical rows; ${each}`;
    const paid = duplicates === "merge" ? noCredits : cost;
    return [...findings, { kind: "identical_rows", message, rows: [], copies: 0, credits: paid }];
  }
}

function identicalRows(
  { numbers, rows, distinct, groups, copies, cost }: SameRows,
  duplicates: Duplicates,
): Finding {
  const inGroups = groups === 1 ? "" : `${groups} groups of `;
  const same =
    distinct === 1
      ? `${inGroups}${rows} combinations of row ${numbers[0]} are identical`
      : `rows ${shortList(numbers, distinct)} are identical`;
  return {
    kind: "identical_rows",
    message:
      duplicates === "merge"
        ? `${same}; they share the same items`
        : `${same}; each is made${cost === noCredits ? "" : ` and paid for (${inCredits(cost)} more than once; --duplicates merge avoids that)`}`,
    rows: numbers,
    copies,
    credits: duplicates === "merge" ? noCredits : cost,
  };
}

const numbersMax = 8;

function shortList(numbers: readonly number[], count: number): string {
  const more = count - numbersMax;
  return `${numbers.slice(0, numbersMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
