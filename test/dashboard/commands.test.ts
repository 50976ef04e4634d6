import { expect, test } from "vitest";
import { wordsOf } from "../../src/dashboard/commands.js";
import type { Act } from "../../src/documents/page.js";
import { lineOf } from "../../src/launch.js";

const items = ["7:0123456789"];

test.each<[Act, string]>([
  [{ do: "pause", run: 7 }, "bulkgen pause 7"],
  [{ do: "cancel", run: 7 }, "bulkgen cancel 7"],
  [{ do: "resume", run: 7, price: 3 }, "bulkgen resume 7 --max-price=3"],
  [{ do: "retry", run: 7, price: 3 }, "bulkgen retry 7 --max-price=3"],
  [{ do: "redo", items, price: 2 }, "bulkgen redo 7:0123456789 --max-price=2"],
  [{ do: "reject again", items, price: 2 }, "bulkgen reject 7:0123456789 --again --max-price=2"],
  [{ do: "resubmit", items, price: 2 }, "bulkgen resolve 7:0123456789 --resubmit --max-price=2"],
  [{ do: "adopt", items, task: "t-1", price: 0 }, "bulkgen resolve 7:0123456789 --adopt=t-1 --max-price=0"],
  [{ do: "refetch", items, price: 4 }, "bulkgen resolve 7:0123456789 --refetch --max-price=4"],
  [{ do: "skip", items }, "bulkgen resolve 7:0123456789 --skip"],
  [{ do: "unpick", items }, "bulkgen pick 7:0123456789 --undo"],
  [
    {
      do: "start",
      choices: { file: "a b.csv", prompt: "--x", params: { size: "l" }, fresh: true },
      price: 9,
    },
    "bulkgen run 'a b.csv' --prompt=--x --param=size=l --fresh --max-price=9",
  ],
])("%j is the command %s", (act, line) => expect(lineOf(wordsOf(act))).toBe(line));
