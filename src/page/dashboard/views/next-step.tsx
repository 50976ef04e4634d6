import { useEffect, useState } from "preact/hooks";
import type { OfferedPrice, RunPage } from "../../../documents/page.js";
import type { RunDocument } from "../../../documents/run.js";
import { counted, credits } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { goesOn } from "../parts/run-words.js";
import { useAnswer } from "../server/answer.js";
import { priceOf, propose, tellError } from "../server/commands.js";

/** The runs that go on with what was approved, each as a button with its price. */
export function NextSteps() {
  const { data } = useAnswer<RunPage>("/api/runs");
  return (
    <>
      {(data?.runs ?? []).filter(goesOn).map((run) => (
        <NextStep run={run} key={run.run} />
      ))}
    </>
  );
}

/** Makes what waited for an approval, for its price. Shows nothing if nothing is left to make. */
export function NextStep({ run }: { run: RunDocument }) {
  const { run: id, job } = run;
  const [price, setPrice] = useState<OfferedPrice | null>(null);
  // Other items of the run have another price.
  const counts = JSON.stringify(run.counts);
  useEffect(() => {
    let isLeft = false;
    priceOf({ do: "resume", run: id, price: 0 }).then((asked) => {
      if (!isLeft) setPrice(asked);
    }, tellError);
    return () => {
      isLeft = true;
    };
  }, [id, counts]);
  if (price === null || price.rest.items === 0) return null;
  const { items } = price.rest;
  return (
    <button
      type="button"
      class="main"
      onClick={() =>
        propose({
          title: `Continue ${visible(job)}`,
          words: `This makes ${counted(items, "item")} of run ${id} that waited for your approval. Nothing archived is paid twice.`,
          act: { do: "resume", run: id, price: 0 },
          price: "asked",
          verb: "Continue",
        })
      }
    >
      Continue {visible(job)} ({counted(items, "item")}, {credits(price.total)})
    </button>
  );
}
